/**
 * What a class file is: one function for each method that a client may send, no more and no less.
 *
 * Used by: handlers/*. Separate because these types make a class file fail to compile where a client's method is missing
 * or a server-only one is present (design §2); they are computed from the codec's table.
 */
import type { ClassName, ContentMethodName, FieldsOf, MethodName, MethodsOf } from "@amqp/codec";
import type { Refusal } from "../refusals.ts";
import type { Channel } from "./channel.ts";

/** Nothing more to do, or a refusal; a promise where the bus has to be asked, and the lane waits for it. */
export type Outcome = Refusal | undefined | Promise<Refusal | undefined>;

/** The content of a method. */
export interface Content {
  readonly properties: Uint8Array;
  readonly body: readonly Uint8Array[];
  /** The running number of the command on its channel. */
  readonly arrival: number;
}

type Handler<Context, N extends MethodName> = N extends ContentMethodName
  ? (context: Context, fields: FieldsOf<N>, content: Content) => Outcome
  : (context: Context, fields: FieldsOf<N>) => Outcome;

/** The handlers of a class. */
export type Handlers<Class extends ClassName, Context = Channel> = {
  readonly [N in MethodsOf<Class, "client">]: Handler<Context, N>;
};
