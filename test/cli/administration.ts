import type { Out } from '../../src/cli/output.ts'
import { temporaryFile } from '../store/temporary.ts'

type Command = { run(args: string[], out: Out, storeUrl: () => string): Promise<number> }

/** What a command printed, and its exit code. */
export type Said = { code: number; stdout: string; stderr: string }

/** Runs something that prints. */
export async function printed(run: (out: Out) => Promise<number>): Promise<Said> {
  const said = { stdout: '', stderr: '' }
  const code = await run({
    stdout: (text) => {
      said.stdout += text
    },
    stderr: (text) => {
      said.stderr += text
    },
  })
  return { code, ...said }
}

/** Runs commands on one new database; `json` reads what was printed. */
export function administration() {
  const url = `sqlite:${temporaryFile('router.sqlite')}`
  return {
    url,
    async say(command: Command, ...args: string[]): Promise<Said & { json(): unknown }> {
      const said = await printed((out) => command.run(args, out, () => url))
      return { ...said, json: () => JSON.parse(said.stdout) }
    },
  }
}
