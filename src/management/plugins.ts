import type { KeyRecord } from '../store/keys.ts'
import { wholeKeyEntry } from './key-entry.ts'
import { keyToChange } from './keys.ts'
import { changedBy, json, type ManageRoute, type RecordContext } from './manage.ts'
import { pluginFields, pluginsEntry, pluginsFrom } from './plugin-rules.ts'
import { membersOf } from './read.ts'

/** Serves `POST /v1/manage/apikey/{id}/plugins`: which plugins are switched on or off for the calls of a key. */
export function keyPluginRoutes({ store, directory }: RecordContext): ManageRoute[] {
  return [
    {
      path: '/v1/manage/apikey/:id/plugins',
      method: 'post',
      // A plugin may guard the calls of a key.
      operates: true,
      handle: async (request) => {
        const changed = await changedBy(request, store, async (tx) => {
          const before = await keyToChange(request, tx)
          const plugins = pluginsFrom(membersOf(request.body, pluginFields), directory())(before.plugins)
          const result = (await tx.keys.update(before.id, { plugins })) as KeyRecord
          return {
            result,
            organization: request.organization,
            action: 'apikey.plugins',
            subject: before.id,
            before: pluginsEntry(before),
            after: pluginsEntry(result),
          }
        })
        return json(await wholeKeyEntry(changed, store))
      },
    },
  ]
}
