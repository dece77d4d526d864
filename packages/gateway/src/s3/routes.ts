import type { Operation } from './call.ts';
import { bucketAcl, objectAcl } from './operations/acl.ts';
import {
  bucketHas,
  bucketLacks,
  bucketLocation,
  createBucket,
  deleteBucket,
  headBucket,
  policyStatus,
  putBucketAcl,
} from './operations/bucket.ts';
import { copyObject, copyPart } from './operations/copy.ts';
import { deleteObjects } from './operations/delete-objects.ts';
import { listBuckets } from './operations/list-buckets.ts';
import { listObjects, listObjectsV2, listVersions } from './operations/list-objects.ts';
import { listParts, listUploads } from './operations/list-uploads.ts';
import { abortUpload, completeUpload, createUpload, uploadPart } from './operations/multipart.ts';
import { deleteObject, getObject, objectAttributes, objectTagging, putObject } from './operations/objects.ts';
import { leaf, root } from './xml-write.ts';

/** An operation, and whether anyone may use it on a public bucket. */
export interface Route {
  readonly run: Operation;
  readonly public: boolean;
}

type Routes = Readonly<Record<string, Route>>;

const signed = (run: Operation): Route => ({ run, public: false });
const open = (run: Operation): Route => ({ run, public: true });

const SERVICE: Routes = {
  GET: signed(listBuckets),
};

const BUCKET: Routes = {
  GET: open(listObjects),
  'GET list-type': open(listObjectsV2),
  'GET versions': open(listVersions),
  HEAD: open(headBucket),
  PUT: signed(createBucket),
  DELETE: signed(deleteBucket),
  'POST delete': signed(deleteObjects),
  'GET uploads': signed(listUploads),
  'GET location': signed(bucketLocation),
  'GET acl': signed(bucketAcl),
  'PUT acl': signed(putBucketAcl),
  'GET policyStatus': signed(policyStatus),
  'GET versioning': signed(bucketHas(root('VersioningConfiguration'))),
  'GET logging': signed(bucketHas(root('BucketLoggingStatus'))),
  'GET notification': signed(bucketHas(root('NotificationConfiguration'))),
  'GET accelerate': signed(bucketHas(root('AccelerateConfiguration'))),
  'GET requestPayment': signed(bucketHas(root('RequestPaymentConfiguration', leaf('Payer', 'BucketOwner')))),
  'GET cors': signed(bucketLacks('NoSuchCORSConfiguration')),
  'GET encryption': signed(bucketLacks('ServerSideEncryptionConfigurationNotFoundError')),
  'GET lifecycle': signed(bucketLacks('NoSuchLifecycleConfiguration')),
  'GET object-lock': signed(bucketLacks('ObjectLockConfigurationNotFoundError')),
  'GET ownershipControls': signed(bucketLacks('OwnershipControlsNotFoundError')),
  'GET policy': signed(bucketLacks('NoSuchBucketPolicy')),
  'GET publicAccessBlock': signed(bucketLacks('NoSuchPublicAccessBlockConfiguration')),
  'GET replication': signed(bucketLacks('ReplicationConfigurationNotFoundError')),
  'GET tagging': signed(bucketLacks('NoSuchTagSet')),
  'GET website': signed(bucketLacks('NoSuchWebsiteConfiguration')),
};

const OBJECT: Routes = {
  GET: open(getObject),
  HEAD: open(getObject),
  PUT: signed(putObject),
  'PUT copy': signed(copyObject),
  DELETE: signed(deleteObject),
  'GET acl': signed(objectAcl),
  'GET attributes': signed(objectAttributes),
  'GET tagging': signed(objectTagging),
  'POST uploads': signed(createUpload),
  'PUT uploadId': signed(uploadPart),
  'PUT uploadId copy': signed(copyPart),
  'POST uploadId': signed(completeUpload),
  'DELETE uploadId': signed(abortUpload),
  'GET uploadId': signed(listParts),
};

export const ROUTES = { service: SERVICE, bucket: BUCKET, object: OBJECT } as const;
export type Subject = keyof typeof ROUTES;

/** Query names that make another operation of a request; those without a route are not built yet. */
export const SUBRESOURCES: ReadonlySet<string> = new Set([
  'abac',
  'accelerate',
  'acl',
  'analytics',
  'attributes',
  'cors',
  'delete',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'list-type',
  'location',
  'logging',
  'metadataConfiguration',
  'metadataInventoryTable',
  'metadataJournalTable',
  'metadataTable',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'session',
  'tagging',
  'torrent',
  'uploadId',
  'uploads',
  'versioning',
  'versions',
  'website',
]);
