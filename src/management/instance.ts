import type { JsonObject } from '../core/json.ts'
import { usdOf } from '../money/usd.ts'
import type { KeyRecord } from '../store/keys.ts'
import { keyState } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { Organization } from '../store/organizations.ts'
import { callEntry } from './calls/call-entry.ts'
import { filteredCalls } from './calls/call-filters.ts'
import { callsCsv, columnsOfAll } from './calls/calls.ts'
import { csvType, wantsCsv } from './calls/csv.ts'
import { usageParameters, usageResponse } from './calls/usage.ts'
import { keyEntry, timeText } from './key-entry.ts'
import { json, type ManagementContext, type ManageRoute } from './manage.ts'
import { isRecordId, limitFrom, pageOf, requireCursor } from './page.ts'
import { invalid, parametersOf } from './read.ts'

/**
 * Serves `/v1/manage/instance/…`: all organizations and the sums over them, for keys with `instance: read`. Nothing here can be changed, and no
 * secret is sent.
 */
export function instanceRoutes({ store }: Pick<ManagementContext, 'store'>): ManageRoute[] {
  const route = (name: string, handle: ManageRoute['handle']): ManageRoute => ({
    path: `/v1/manage/instance${name}`,
    readsInstance: true,
    handle,
  })
  return [
    route('', async ({ query }) => {
      parametersOf(query, [])
      return json(await instanceEntry(store))
    }),
    route('/org', (request) =>
      pageOf(request, {
        name: 'organizations',
        read: store.organizations.page,
        isCursor: isRecordId,
        idOf: ({ id }) => id,
        entry: (one) => organizationEntry(one, store),
      }),
    ),
    route('/apikey', async ({ query: { organization: asked, ...query } }) => {
      const organization = await organizationIn(asked, store)
      return await pageOf(
        { organization: organization ?? '', query },
        {
          name: 'keys',
          read: ({ after, limit }) =>
            store.keys.page({ limit, ...(organization && { organization }), ...(after !== undefined && { after }) }),
          isCursor: async (id) => (await store.keys.ownerOf(id)) !== undefined,
          idOf: ({ id }) => id,
          entry: (key) => ownedKeyEntry(key, store),
        },
      )
    }),
    route('/usage', async ({ query: { organization: asked, ...query }, headers }) => {
      const organization = await organizationIn(asked, store)
      return await usageResponse(store, { ...(organization && { organization }), ...usageParameters(query) }, headers)
    }),
    route('/calls', async ({ query: { organization: asked, ...query }, headers, recheck }) => {
      const organization = await organizationIn(asked, store)
      if (wantsCsv(headers)) {
        const { from = 0, to, filters } = filteredCalls(query, [])
        const body = callsCsv({ from, to, filters, organization }, store, recheck, columnsOfAll)
        return { body, mediaType: csvType }
      }
      const { limit, cursor, from = 0, to, filters } = filteredCalls(query, ['limit', 'cursor'])
      await requireCursor(cursor, (id) => store.calls.isCursor(id, organization))
      const page = {
        from,
        to,
        filters,
        limit: limitFrom(limit, usualLimit),
        ...(cursor !== undefined && { after: cursor }),
      }
      const { calls, next } =
        organization === undefined
          ? await store.calls.pageOfAll(page)
          : await store.calls.page({ ...page, organization })
      const entries = calls.map((call) => ({ organization: call.call.organization, ...callEntry(call) }))
      return json({ calls: entries, ...(next !== undefined && { next_cursor: next }) })
    }),
  ]
}

const usualLimit = 100

/** Returns the id of an organization that a query names; undefined for all. Rejects with RouterError 400. */
export async function organizationIn(
  value: string | string[] | undefined,
  { organizations }: Pick<Store, 'organizations'>,
): Promise<string | undefined> {
  if (value === undefined) return undefined
  const { organization = '' } = parametersOf({ organization: value }, ['organization'])
  if (await organizations.find(organization)) return organization
  const message = `There is no organization '${organization.slice(0, 60)}'; GET /v1/manage/instance/org lists them.`
  throw invalid(message, 'organization')
}

async function instanceEntry({ organizations, keys, spend }: Store): Promise<JsonObject> {
  const all = await organizations.list()
  const sum = (of: (one: Organization) => bigint) => all.reduce((total, one) => total + of(one), 0n)
  return {
    organizations: all.length,
    keys: await keys.countAll(),
    credit: usdOf(sum(({ creditNano }) => creditNano)),
    spend: usdOf(sum(({ spendNano }) => spendNano)),
    monthly_spend: usdOf(await spend.ofAll(Date.now())),
  }
}

async function organizationEntry(
  { id, name, creditNano, spendNano, createdAt }: Organization,
  store: Store,
): Promise<JsonObject> {
  return {
    id,
    name,
    keys: await store.keys.count(id),
    credit: usdOf(creditNano),
    spend: usdOf(spendNano),
    monthly_spend: usdOf(await store.spend.ofOrganization(id, Date.now())),
    balance: usdOf(creditNano - spendNano),
    created_at: timeText(createdAt),
  }
}

async function ownedKeyEntry(key: KeyRecord, store: Store): Promise<JsonObject> {
  const { organization, expiresAt } = key
  const entry = await keyEntry(key, store)
  return { organization, ...entry, state: keyState(key, Date.now()), expires_at: timeText(expiresAt) }
}
