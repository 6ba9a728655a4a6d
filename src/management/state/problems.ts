import type { JsonObject } from '../../core/json.ts'
import type { FileProblem } from '../../manifest/check/problem.ts'
import type { FailingHook } from '../../observe/worker-metrics.ts'
import { hookProblem } from '../../plugin/faults.ts'
import type { Snapshot } from '../../snapshot/snapshot.ts'
import { json, type ManagementContext, type ManageRoute } from '../manage.ts'
import { problemEntry } from '../providers.ts'
import { parametersOf } from '../read.ts'

/**
 * Serves `/v1/manage/problems`: the files that are not in use in their newest version, with the place of each error and what is unavailable
 * because of it, and plugins that fail on every call.
 */
export function problemRoutes({ watch, failingHooks }: ManagementContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/problems',
      handle({ query }) {
        parametersOf(query, [])
        const snapshot = watch.current()
        return json({
          problems: [
            ...watch.problems().map((problem) => fileProblemEntry(problem, snapshot)),
            ...byHook(failingHooks()).map(hookProblemEntry),
          ],
        })
      },
    },
  ]
}

function fileProblemEntry(problem: FileProblem, { config, unavailable, off }: Snapshot): JsonObject {
  const isHere = (one: { file: string; line: number }) => one.file === problem.file && one.line === problem.line
  const isWanted = (slug: string) => !off.has(slug) && config.providers[slug]?.enabled !== false
  const providers = [...unavailable.providers].filter(([slug, one]) => isHere(one) && isWanted(slug))
  const plugins = [...unavailable.plugins].filter(([, one]) => isHere(one.problem))
  return {
    kind: problem.kind,
    ...problemEntry(problem, config.path),
    column: problem.column,
    unavailable: [...providers, ...plugins].map(([name]) => name).sort(),
  }
}

/** Adds up the calls of a hook in all threads; one that has not failed in each of them is not listed by the others. */
function byHook(hooks: readonly FailingHook[]): FailingHook[] {
  const same = Map.groupBy(hooks, ({ plugin, hook }) => `${plugin} ${hook}`)
  return [...same.values()].map(([first, ...others]) => {
    const { plugin, hook, calls } = first as FailingHook
    return { plugin, hook, calls: others.reduce((sum, one) => sum + one.calls, calls) }
  })
}

function hookProblemEntry(failing: FailingHook): JsonObject {
  return { kind: 'hook', message: hookProblem(failing), severity: 'error', plugin: failing.plugin, unavailable: [] }
}
