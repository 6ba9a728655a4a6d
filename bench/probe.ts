/**
 * Loaded into a measured process before its own code (`--import`): answers what it has used, over the channel to its parent. It
 * starts no timer and does not keep the process alive.
 */
import type { Used } from './measured.ts'

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  const main = process.threadCpuUsage()
  const used: Used = {
    cpuUs: user + system,
    mainUs: main.user + main.system,
    rss: process.memoryUsage.rss(),
    mostRss: process.resourceUsage().maxRSS * 1_024,
    heldMs: Number.NaN,
  }
  process.send?.(used)
})
// A bench that fails leaves no process behind.
process.on('disconnect', () => process.exit(1))
process.channel?.unref()
