/** The front door for clients: what signs a request, without the gateway that answers it. */
export { pathOf, queryOf, signRequest } from './s3/signer.ts';
