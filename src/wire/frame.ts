/** One unit of a stream as it stood on the wire: its name, where the wire has names, and its text. */
export type Frame = { event?: string; data: string }

/** A frame longer than this is not a provider's event: it would only fill the memory. Characters or bytes. */
export const frameLimit = 64 * 1024 * 1024

/** Bytes that are not what their format says: `unreadable`, or `cut` when they end in the middle of a frame. */
export class FrameError extends Error {
  readonly kind: 'unreadable' | 'cut'

  constructor(kind: 'unreadable' | 'cut', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'FrameError'
    this.kind = kind
  }
}
