import type { Out } from '../../src/cli/output.ts'

/** What a command printed and its exit code. */
export type Ran = { code: number; stdout: string; stderr: string }

/** Runs a command's function with these words. */
export async function ran(run: (args: string[], out: Out) => Promise<number>, ...args: string[]): Promise<Ran> {
  const said = { stdout: '', stderr: '' }
  const code = await run(args, {
    stdout: (text) => {
      said.stdout += text
    },
    stderr: (text) => {
      said.stderr += text
    },
  })
  return { code, ...said }
}
