import type { JsonObject } from '../core/json.ts'
import { formatProblem, hasErrors } from '../manifest/check/problem.ts'
import { checkOptions } from '../manifest/read/options.ts'
import { readSource } from '../manifest/read/source.ts'
import { noBudgets } from './budgets.ts'
import type { Hooks, Kit, Plugin, PluginLog } from './contract.ts'
import { openKit } from './kit.ts'
import { hooksProblem, pluginProblem } from './shape.ts'
import { runCall, type TestCall, type TestedCall } from './test-call.ts'
import { valuesInMemory } from './values.ts'

export type { TestCall, TestedCall } from './test-call.ts'

/** Options, secrets, budgets and `fetch` for a plugin under test. */
export type TestSetup<Options> = {
  options?: Partial<Options>
  /** Variables of the environment, by name. */
  secrets?: { readonly [name: string]: string }
  /** Returns the budgets of a key; by default there are none. */
  budgets?: Kit['budgets']
  /** By default every `fetch` fails. */
  fetch?: Kit['fetch']
}

/** A plugin that is set up for a test. */
export type TestedPlugin = AsyncDisposable & {
  hooks: Hooks
  /** The services that the plugin was set up with. */
  kit: Kit
  logged: { level: keyof PluginLog; facts: Record<string, unknown>; message: string }[]
  /** Runs a call through all hooks. Rejects with what a hook throws, and when a hook returns something invalid. */
  call(call?: TestCall): Promise<TestedCall>
}

/** Sets a plugin up for a test, as the router does. Rejects with an Error that says what is wrong with the plugin or its options. */
export async function openPlugin<Options>(
  plugin: Plugin<Options>,
  { options = {}, secrets = {}, budgets = noBudgets, fetch = unreachable }: TestSetup<Options> = {},
): Promise<TestedPlugin> {
  const wrong = pluginProblem(plugin)
  if (wrong) throw new Error(wrong.message)
  const logged: TestedPlugin['logged'] = []
  const write = (level: keyof PluginLog) => (facts: Record<string, unknown>, message: string) => {
    logged.push({ level, facts, message })
  }
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  const openFetch = () => ({ fetch, close: async () => {} })
  const lent = {
    log: log as never,
    env: secrets,
    credentials: new Set<string>(),
    values: valuesInMemory(),
    budgets,
    openFetch,
  }
  const { kit } = openKit('tested', [], lent)
  const hooks = await plugin.setup(checkedOptions(plugin, options as JsonObject) as Options, kit)
  const unusable = hooksProblem(hooks)
  if (unusable) throw new Error(unusable.message)
  return {
    hooks,
    kit,
    logged,
    call: (call = {}) => runCall(hooks, call),
    async [Symbol.asyncDispose]() {
      await hooks[Symbol.asyncDispose]?.()
    },
  }
}

function checkedOptions(
  { options: schema, renamedOptions }: Pick<Plugin, 'options' | 'renamedOptions'>,
  given: JsonObject,
): JsonObject {
  const source = readSource('options', JSON.stringify(given))
  const blame = (message: string) => source.problem([], message)
  const { options, problems } = checkOptions(given, { name: 'tested', schema, renamed: renamedOptions, source, blame })
  if (hasErrors(problems)) throw new Error(problems.map(formatProblem).join('\n'))
  return options
}

const unreachable: Kit['fetch'] = async (url) => {
  throw new TypeError(`no network in tests: give openPlugin a \`fetch\` that answers ${url}`)
}
