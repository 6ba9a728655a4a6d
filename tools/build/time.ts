import { project, run } from './program.ts'

/**
 * Returns the time of everything in a build, in seconds: `SOURCE_DATE_EPOCH`, else that of the last commit, so that builds of one commit are
 * equal; without a repository a fixed one.
 */
export function buildTime(): number {
  const given = Number(process.env.SOURCE_DATE_EPOCH)
  if (Number.isSafeInteger(given) && given > 0) return given
  try {
    return Number(run('git', ['log', '-1', '--format=%ct'], { cwd: project }))
  } catch {
    return 1_577_836_800
  }
}
