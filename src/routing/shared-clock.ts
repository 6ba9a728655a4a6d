/** `performance.now()` begins with the thread, the system's monotonic clock does not. */
const clockOffset = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Milliseconds of a monotonic clock that all threads and processes of a machine share. */
export function sharedClock(): number {
  return performance.now() + clockOffset
}
