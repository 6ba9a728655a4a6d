import { expect, test } from 'vitest'
import type { CallFacts } from '../../src/plugin/call-view.ts'
import type { Hooks, PluginCall } from '../../src/plugin/contract.ts'
import { PluginFaults } from '../../src/plugin/faults.ts'
import { RunningPlugin } from '../../src/plugin/running.ts'

/** A plugin in a call, whose hooks may take so long. */
function runningPlugin(hooks: Hooks, timeoutMs: number) {
  const facts = { id: 'call', headers: {}, signal: new AbortController().signal, body: () => ({}) }
  const plugin = { name: 'slow', hooks, onError: 'open', timeoutMs, enabled: true, organizations: 'all' } as const
  const faults = new PluginFaults({ warn() {} })
  return { running: new RunningPlugin(plugin, facts as unknown as CallFacts, faults), faults }
}

test('what a hook that took too long still does with its call is refused, and a later hook has its own time', async () => {
  const calls: { call: PluginCall; signal: AbortSignal }[] = []
  const hooks = {
    async targets(_: unknown, call: PluginCall) {
      calls.push({ call, signal: call.signal })
      if (calls.length === 1) await new Promise(() => {})
      return undefined
    },
  } as unknown as Hooks
  const { running, faults } = runningPlugin(hooks, 20)
  const run = { given: {}, check: () => 'checked' }
  expect(await running.run('targets', { ...run })).toBeUndefined()
  const [slow] = calls
  expect(slow?.signal.aborted).toBe(true)
  expect(slow?.signal.reason).toMatchObject({ name: 'TookTooLong', message: 'it took longer than 20 ms' })
  expect(faults.counts()).toEqual([{ plugin: 'slow', hook: 'targets', fault: 'took_too_long', count: 1 }])
  await running.run('targets', { ...run })
  expect(calls[1]?.signal.aborted).toBe(false)
  expect(faults.counts()).toMatchObject([{ count: 1 }])
})

test('a hook that fails in its time keeps its signal: what it has begun may go on', async () => {
  const signals: AbortSignal[] = []
  const hooks = {
    async targets(_: unknown, call: PluginCall) {
      signals.push(call.signal)
      throw new Error('no')
    },
  } as unknown as Hooks
  const { running, faults } = runningPlugin(hooks, 10_000)
  await running.run('targets', { given: {}, check: () => 'checked' })
  expect(signals[0]?.aborted).toBe(false)
  expect(faults.counts()).toEqual([{ plugin: 'slow', hook: 'targets', fault: 'threw', count: 1 }])
})
