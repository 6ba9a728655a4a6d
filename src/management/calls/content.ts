import { deleteContentOf, findContent } from '../../plugin/stored-content.ts'
import { audited } from '../../store/audit.ts'
import { json, type ManagementContext, type ManageRoute, missing, pathPart } from '../manage.ts'
import { invalid, parametersOf } from '../read.ts'
import { ownIdIn } from './call-entry.ts'
import { filled } from './call-filters.ts'

/**
 * Serves what plugins have stored of the calls of the organization: reads that of one call, and deletes that of one end user. Each request
 * that finds something is an entry in the audit log, written before the answer.
 */
export function contentRoutes({ store, watch }: Pick<ManagementContext, 'store' | 'watch'>): ManageRoute[] {
  const plugins = () => watch.current().plugins
  return [
    {
      path: '/v1/manage/calls/:id/content',
      readsContent: true,
      async handle({ key, organization, params, query, recheck }) {
        parametersOf(query, [])
        const asked = pathPart({ params }, 'id')
        const { call } = (await store.calls.find(ownIdIn(asked) ?? asked, organization)) ?? missing('call', asked)
        const { id, at, durationMs } = call
        const found = await findContent(plugins(), { id, organization, at, durationMs })
        if (!found) return missing('stored content of the call', id)
        await recheck()
        const { plugin, request, reply, omittedBytes } = found
        const entry = json({
          id,
          stored_by: plugin,
          operation: call.operation,
          api: call.api,
          asked: call.requested,
          request: request ?? null,
          reply: reply ?? null,
          ...(omittedBytes !== undefined && { omitted_bytes: omittedBytes }),
        })
        const result = { ...entry, noStore: true }
        return await audited(store, key.id, async () => ({ result, organization, action: 'content.read', subject: id }))
      },
    },
    {
      path: '/v1/manage/content',
      method: 'delete',
      readsContent: true,
      async handle({ key, organization, query }) {
        const { user } = parametersOf(query, ['user'])
        if (user === undefined) throw invalid("'user' is missing: it must be the end user that requests name.", 'user')
        const calls = await deleteContentOf(plugins(), { organization, user: filled(user, 'user') })
        const result = json({ calls })
        const after = { calls }
        const entry = { organization, action: 'content.delete', subject: user, after }
        return await audited(store, key.id, async () => ({ result, ...entry }))
      },
    },
  ]
}
