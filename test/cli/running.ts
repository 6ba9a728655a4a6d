import type { Out } from '../../src/cli/output.ts'

/** What a command printed and its exit code. */
export type Ran = { code: number; stdout: string; stderr: string }

/** Runs a command's function with these words. */
export async function ran(run: (args: string[], out: Out) => Promise<number>, ...args: string[]): Promise<Ran> {
  const result = { stdout: '', stderr: '' }
  const code = await run(args, {
    stdout: (text) => {
      result.stdout += text
    },
    stderr: (text) => {
      result.stderr += text
    },
  })
  return { code, ...result }
}
