/** A bucket whose watch is late: what a replica's mirror lags behind the log, for tests alone. */
import type { Bucket, BucketListener, Watch } from "@amqp/topology";

/** Tells every entry `milliseconds` later, in order; who waits for a revision waits as much longer. */
export function late(bucket: Bucket, milliseconds: number): Bucket {
  return {
    within: (prefix) => late(bucket.within(prefix), milliseconds),
    create: (key, value) => bucket.create(key, value),
    update: (key, value, revision) => bucket.update(key, value, revision),
    remove: (key, revision) => bucket.remove(key, revision),
    read: (key) => bucket.read(key),
    refresh: (key, value, revision, ttl) => bucket.refresh(key, value, revision, ttl),
    lastRevision: () => bucket.lastRevision(),
    watch: async (listener: BucketListener): Promise<Watch> => {
      let told = Promise.resolve();
      const after = (tell: () => void): void => {
        const due = new Promise((resolve) => setTimeout(resolve, milliseconds));
        told = told.then(() => due).then(tell);
      };
      const watch = await bucket.watch({
        entry: (entry) => after(() => listener.entry(entry)),
        lost: (error) => after(() => listener.lost(error)),
      });
      await told;
      return {
        caughtUp: async (revision) => {
          await watch.caughtUp(revision);
          await told;
        },
        stop: () => watch.stop(),
      };
    },
  };
}
