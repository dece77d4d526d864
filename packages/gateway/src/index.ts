export { type DoorOptions, openDoor, type OpenDoor } from './door.ts';
export { type AccessKey, bearerTokenOf, KeyRing } from './keys.ts';
export type { Reporter } from './reports.ts';
export { pathOf, presign, queryOf, signRequest, type SigningRequest } from './s3/signer.ts';
export { deriveSigningKey, EMPTY_SHA256, UNSIGNED_PAYLOAD } from './s3/sigv4.ts';
