/**
 * TLS on an accepted socket: the handshake, client certificates, and a certificate that can be renewed while
 * connections go on.
 *
 * Used by: server.ts. Separate because the port, its limits and its clocks are the same with TLS and without: a socket
 * is accepted first and secured then. The `tls.Server` here never listens; sockets are handed to it.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from "node:tls";

/** What a TLS port shows, and asks for. */
export interface TlsOptions {
  /** PEM: the server's own certificate first, then those between it and its root. */
  readonly cert: string;
  /** PEM, without a passphrase. */
  readonly key: string;
  /** PEM: whose client certificates are taken. */
  readonly ca?: string;
  /** Nobody connects without a certificate that `ca` signed. */
  readonly requireClientCertificate?: boolean;
}

/** The certificate, its key or its authority is not what TLS takes: {@link Error.message} says why. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/** How a handshake ended. */
export type Secured = (outcome: TLSSocket | Error) => void;

/** Octets of the keys that session tickets are sealed with, as Node has it. */
const TICKET_KEYS = 48;

export class Tls {
  readonly #server: Server;
  /** Who waits for a handshake, by the peer's address and port. */
  readonly #waiting: Map<string, Secured> = new Map<string, Secured>();

  /** @throws CertificateError */
  constructor(options: TlsOptions) {
    const { requireClientCertificate = false } = options;
    if (requireClientCertificate && options.ca === undefined) {
      throw new CertificateError("client certificates are required, and no authority is named that signs them");
    }
    this.#server = attempt(() =>
      createServer({
        ...context(options),
        requestCert: requireClientCertificate,
        rejectUnauthorized: requireClientCertificate,
        handshakeTimeout: HOUR, // the connection's own clock is shorter
      }),
    );
    this.#server.on("secureConnection", (socket: TLSSocket) => this.#ended(socket, socket));
    this.#server.on("tlsClientError", (error, socket) => this.#ended(socket, error));
  }

  /** Begins a handshake; `secured` is told once, unless the socket closes before. */
  secure(socket: Socket, secured: Secured): void {
    const peer = peerOf(socket);
    this.#waiting.set(peer, secured);
    socket.once("close", () => {
      if (this.#waiting.get(peer) === secured) this.#waiting.delete(peer);
    });
    this.#server.emit("connection", socket);
  }

  /**
   * Handshakes from now on use this; connections that are there go on. Tickets of earlier sessions are void, so that
   * nobody resumes what another authority let in. Whether client certificates are required stays as it was.
   * @throws CertificateError, and nothing has changed
   */
  renew(options: TlsOptions): void {
    attempt(() => this.#server.setSecureContext(context(options)));
    this.#server.setTicketKeys(randomBytes(TICKET_KEYS));
  }

  #ended(socket: TLSSocket, outcome: TLSSocket | Error): void {
    const peer = peerOf(socket);
    const secured = this.#waiting.get(peer);
    this.#waiting.delete(peer);
    if (secured === undefined) socket.destroy();
    else secured(outcome);
  }
}

const HOUR = 3_600_000;

function context({ cert, key, ca }: TlsOptions): SecureContextOptions {
  // RFC 8996: nothing below 1.2 is spoken any more.
  return { cert, key, ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2" };
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function attempt<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new CertificateError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
