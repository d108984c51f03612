// Whether the tests run against RabbitMQ: AMQP_REFERENCE_URL names one.
// Separate from target.ts, which starts a gateway where it is imported.

/** `amqp://user:password@host:port` of a RabbitMQ, or undefined. */
export const REFERENCE_URL: string | undefined = process.env.AMQP_REFERENCE_URL || undefined;

/** The target is RabbitMQ, not our gateway. */
export const isReference: boolean = REFERENCE_URL !== undefined;
