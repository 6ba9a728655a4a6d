/** Returns the time in which this thread makes a text of bytes and parses it, once. Milliseconds. */
export function parseMs(body: string | Uint8Array): number {
  const bytes = Buffer.from(body)
  const times = [1, 2, 3].map(() => {
    const before = process.threadCpuUsage()
    try {
      JSON.parse(bytes.toString())
    } catch {}
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.max(...times)
}
