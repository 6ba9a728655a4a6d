import { rmSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { routerProcess } from '../../helpers/process.ts'
import { routerFolder, simulatorOnly } from '../../helpers/router.ts'
import { slow } from '../../helpers/slow.ts'

// In a process of its own: what nobody catches would end the process of the tests.

const hooks = ['request', 'targets', 'send', 'event', 'reply', 'record']
const leak = `
const leaks = () => {
  setInterval(() => {}, 5)
  setTimeout(() => { throw new Error('of a timer') }, 1)
  void Promise.reject(new Error('of nobody'))
  void new Promise((resolve) => setTimeout(resolve, 1)).then(() => { throw new Error('later') })
}`
const leaky = `import { definePlugin } from 'inference-router/plugin'
${leak}
export default definePlugin({ setup: () => ({ ${hooks.map((hook) => `${hook}() { leaks(); return undefined }`).join(', ')} }) })
`

test(
  'timers and promises that all hooks leave behind end no call and no process, and metrics name the plugin',
  slow,
  async () => {
    const { folder, configPath } = routerFolder({
      files: { ...simulatorOnly, 'plugins/leaky.ts': leaky },
      settings: { plugins: [{ name: 'leaky', on_error: 'closed' }] },
    })
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const router = await routerProcess(configPath)
    const ask = async (stream: boolean) => {
      const messages = [{ role: 'user', content: 'Hello' }]
      const response = await router.call('/v1/chat/completions', { model: 'demo/echo', messages, stream })
      return [response.status, (await response.text()).includes('You')]
    }
    const asked = Array.from({ length: 10 }, (_, index) => ask(index % 2 === 1))
    expect(await Promise.all(asked)).toEqual(asked.map(() => [200, true]))
    // Five hooks of a whole answer, three leaks each; of streams there are more.
    const counted = async () => {
      const text = await (await router.call('/metrics')).text()
      const lines = text.split('\n').filter((line) => line.startsWith('inference_router_plugin_faults_total{'))
      return lines.map((line) => [line.replace(/ \d+$/, ''), Number(line.split(' ').at(-1)) >= 10 * 5 * 3])
    }
    const labels = 'plugin="leaky",hook="background",fault="threw"'
    await expect.poll(counted, { timeout: 10_000 }).toEqual([[`inference_router_plugin_faults_total{${labels}}`, true]])
    expect(await ask(false)).toEqual([200, true])
    // What it keeps running does not keep the process.
    expect(await router.end('SIGTERM')).toBe(0)
  },
)
