import type { Out } from '../../src/cli/command.ts'

/** The output of a command, and its exit code. */
export type Ran = { code: number; stdout: string; stderr: string }

/** Runs a command's function with these arguments. */
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
