import type { Out } from '../../src/cli/command.ts'
import { temporaryFile } from '../store/temporary.ts'

type Command = { run(args: string[], out: Out, storeUrl: () => string): Promise<number> }

/** The output of a command, and its exit code. */
export type CommandResult = { code: number; stdout: string; stderr: string }

/** Runs something that prints. */
export async function printed(run: (out: Out) => Promise<number>): Promise<CommandResult> {
  const result = { stdout: '', stderr: '' }
  const code = await run({
    stdout: (text) => {
      result.stdout += text
    },
    stderr: (text) => {
      result.stderr += text
    },
  })
  return { code, ...result }
}

/** Runs commands on one new database; `json` parses the output. */
export function administration() {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  return {
    url,
    async runCommand(command: Command, ...args: string[]): Promise<CommandResult & { json(): unknown }> {
      const result = await printed((out) => command.run(args, out, () => url))
      return { ...result, json: () => JSON.parse(result.stdout) }
    },
  }
}
