/**
 * Branded as everywhere in WebDFS, by structure: this room depends on no other, and a `NodeId` of `@webdfs/base` is one of
 * these.
 */
type Brand<Name extends string> = number & { readonly '~brand': Name };

/** A storage node: a stable small integer, 1..65 535, never used again for another node. */
export type NodeId = Brand<'NodeId'>;
/** A group, 0..G−1: all objects of a group lie on the same nodes. */
export type GroupId = Brand<'GroupId'>;
