import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Out } from './output.ts'

/** The options that a command takes, and how many positional arguments at most (none unless given). */
export type Syntax = { options: NonNullable<ParseArgsConfig['options']>; positionals?: number }

/** Parsed arguments: `text` is the value of an option, `texts` those of a repeatable one, `flag` whether one is given. */
export type Args = {
  positionals: readonly string[]
  text(name: string): string | undefined
  texts(name: string): readonly string[]
  flag(name: string): boolean
}

/** The arguments are wrong: exit code 2. */
export class UsageError extends Error {}

/** The arguments are valid, but the command failed: exit code 1. */
export class CommandError extends Error {}

/**
 * Runs a command: prints its help when requested, and reports UsageError and CommandError on standard error.
 * Returns the exit code.
 */
export async function runCommand(
  args: readonly string[],
  { help, out }: { help: string; out: Out },
  run: () => Promise<number>,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    out.stdout(help)
    return 0
  }
  try {
    return await run()
  } catch (thrown) {
    if (!(thrown instanceof UsageError || thrown instanceof CommandError)) throw thrown
    const isUsage = thrown instanceof UsageError
    out.stderr(isUsage ? `${thrown.message}\n\n${help}` : `${thrown.message}\n`)
    return isUsage ? 2 : 1
  }
}

/** Parses the arguments of a command. Throws UsageError. */
export function parseArguments(args: string[], { options, positionals: most = 0 }: Syntax): Args {
  const { values, positionals } = parsed(args, options)
  const surplus = positionals[most]
  if (surplus !== undefined) throw new UsageError(`'${surplus}' is one argument too many`)
  return {
    positionals,
    text: (name) => (typeof values[name] === 'string' ? values[name] : undefined),
    texts: (name) => [values[name] ?? []].flat().filter((value) => typeof value === 'string'),
    flag: (name) => values[name] === true,
  }
}

/** The action that the first argument of a command names. Throws UsageError. */
export function actionNamed<Action>(actions: { readonly [name: string]: Action }, name: string | undefined): Action {
  const action = name !== undefined && Object.hasOwn(actions, name) ? actions[name] : undefined
  if (action) return action
  const known = Object.keys(actions).join(', ')
  throw new UsageError(name ? `there is no action '${name}'; actions: ${known}` : `name an action: ${known}`)
}

function parsed(args: string[], options: Syntax['options']) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (thrown) {
    if (thrown instanceof Error && `${(thrown as NodeJS.ErrnoException).code}`.startsWith('ERR_PARSE_ARGS'))
      throw new UsageError(thrown.message)
    throw thrown
  }
}
