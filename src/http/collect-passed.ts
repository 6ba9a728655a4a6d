/** Bytes that have passed since memory was collected. */
let passed = 0

/**
 * Told of bytes that passed through memory: their buffers are small objects to V8, which would leave some 64 MB of them before it
 * collects; a server, whose flags allow it, collects them for each 4 MB.
 */
export function collectPassed(bytes: number): void {
  passed += bytes
  if (passed < passedAtMost) return
  passed = 0
  globalThis.gc?.({ type: 'minor' })
}

const passedAtMost = 4 * 1_024 * 1_024
