// The types derived from the method table: names, fields, and which side may send what.
// Everything here is computed from METHODS, so a type cannot drift from the wire; decoders, encoders and the broker's
// class files share them. Separate from methods.ts, which is data, and from method.ts, which is the engine.
import type { METHODS, Sender } from "./methods.ts";
import type { FieldTable } from "./table.ts";

/** What each wire type is once decoded. 64-bit integers are exact: `longlong` and `timestamp` are bigint. */
export interface DecodedTypes {
  readonly bit: boolean;
  readonly octet: number;
  readonly short: number;
  readonly long: number;
  readonly longlong: bigint;
  /** UTF-8, at most 255 octets. */
  readonly shortstr: string;
  /** Octets, not necessarily text (a SASL response, for one). A view on the decoded payload, not a copy. */
  readonly longstr: Buffer;
  readonly table: FieldTable;
  /** Seconds since 1970. */
  readonly timestamp: bigint;
}

/** What may be given to the encoder for each wire type. */
export interface EncodableTypes {
  readonly bit: boolean;
  readonly octet: number;
  readonly short: number;
  readonly long: number;
  readonly longlong: bigint | number;
  readonly shortstr: string;
  readonly longstr: Uint8Array | string;
  readonly table: FieldTable;
  readonly timestamp: bigint | number;
}

/** The name of a wire type (AMQP 4.2.5). */
export type WireType = keyof DecodedTypes;

type Table = typeof METHODS;

/** `"connection.start" | … | "confirm.select-ok"`: class and method as the standard spells them. */
export type MethodName = keyof Table;

/** The class of a method: `ClassOf<"basic.publish">` is `"basic"`. */
export type ClassOf<N extends MethodName> = N extends `${infer Class}.${string}` ? Class : never;

/** `"connection" | "channel" | "access" | "exchange" | "queue" | "basic" | "tx" | "confirm"`. */
export type ClassName = ClassOf<MethodName>;

type MayCome<F extends Sender, From extends Sender> = From extends "both"
  ? true
  : F extends From | "both"
    ? true
    : false;

/**
 * The methods of a class that a side may send: `MethodsOf<"basic", "client">`. Methods that both may send belong to
 * either side; with `"both"` (the default) it is every method of the class.
 */
export type MethodsOf<Class extends ClassName, From extends Sender = "both"> = {
  [N in MethodName]: ClassOf<N> extends Class ? (MayCome<Table[N]["from"], From> extends true ? N : never) : never;
}[MethodName];

/** The methods that a content header and body follow: `basic.publish`, `return`, `deliver` and `get-ok`. */
export type ContentMethodName = {
  [N in MethodName]: Table[N] extends { readonly content: true } ? N : never;
}[MethodName];

type Rows<N extends MethodName> = Table[N]["fields"][number];

/** The fields of a method as decoded, by their names in camelCase. */
export type FieldsOf<N extends MethodName> = {
  readonly [Row in Rows<N> as Row[0]]: DecodedTypes[Row[1]];
};

// The standard's reserved fields, and those that no peer reads any more: zero or empty where left out.
type Reserved = "ticket" | "outOfBand" | "channelId" | "capabilities" | "insist" | "knownHosts" | "clusterId";

/** The fields of a method as the encoder takes them; reserved ones may be left out and are then zero or empty. */
export type FieldsInput<N extends MethodName> = {
  readonly [Row in Rows<N> as Row[0] extends Reserved ? never : Row[0]]: EncodableTypes[Row[1]];
} & {
  readonly [Row in Rows<N> as Row[0] extends Reserved ? Row[0] : never]?: EncodableTypes[Row[1]];
};

/** One decoded method: `name` tells which, and narrows `fields`. */
export interface MethodOf<N extends MethodName> {
  readonly name: N;
  readonly fields: FieldsOf<N>;
}

/** Any decoded method, discriminated by `name`: `m.name === "basic.publish"` makes `m.fields.routingKey` a string. */
export type Method = { [N in MethodName]: MethodOf<N> }[MethodName];

/** A method that content follows. */
export type ContentMethod = { [N in ContentMethodName]: MethodOf<N> }[ContentMethodName];
