// The one error that this package throws: octets that are not AMQP, or a value that no octets can carry.
// Decoders and encoders throw it; the broker answers connection.close with its reply code and text. Separate so that
// every other file can throw it without importing another's part.
import { ReplyCode } from "./constants.ts";

/** The reply codes that a codec's error carries. */
export type CodecErrorCode =
  | typeof ReplyCode.FRAME_ERROR
  | typeof ReplyCode.SYNTAX_ERROR
  | typeof ReplyCode.COMMAND_INVALID
  | typeof ReplyCode.UNEXPECTED_FRAME;

const PREFIX: Record<CodecErrorCode, string> = {
  [ReplyCode.FRAME_ERROR]: "FRAME_ERROR",
  [ReplyCode.SYNTAX_ERROR]: "SYNTAX_ERROR",
  [ReplyCode.COMMAND_INVALID]: "COMMAND_INVALID",
  [ReplyCode.UNEXPECTED_FRAME]: "UNEXPECTED_FRAME",
};

// Texts are ASCII, so characters are octets; a shortstr takes 255.
const TEXT_MAX = 255;

/**
 * Thrown for malformed input and for values that cannot be encoded; nothing else is thrown by this package.
 * `message` is a reply text as RabbitMQ words them (`SYNTAX_ERROR - …`) and fits a shortstr.
 */
export class CodecError extends Error {
  override readonly name: string = "CodecError";
  /** What connection.close should carry: 501, 502, 503 or 505. */
  readonly replyCode: CodecErrorCode;
  /** The class of the method that was being decoded, 0 where none was known. */
  readonly classId: number;
  /** The method that was being decoded, 0 where none was known. */
  readonly methodId: number;

  /** The text without the code's name before it. */
  readonly reason: string;

  constructor(replyCode: CodecErrorCode, text: string, classId = 0, methodId = 0) {
    super(`${PREFIX[replyCode]} - ${text}`.slice(0, TEXT_MAX));
    this.replyCode = replyCode;
    this.reason = text;
    this.classId = classId;
    this.methodId = methodId;
  }
}

/** A CodecError 502: octets that do not add up to the fields they announce. */
export function syntaxError(text: string): CodecError {
  return new CodecError(ReplyCode.SYNTAX_ERROR, text);
}
