/** Milliseconds that this thread has computed: unlike the clock, they do not depend on what else the machine does. */
export function cpuTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
