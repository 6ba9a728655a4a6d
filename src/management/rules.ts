import { type Check, filledText, listOf, optional, refuse } from '../api/check.ts'
import type { JsonObject } from '../core/json.ts'
import type { DataRules } from '../core/names.ts'
import { json, type ManagementRooms, type ManageRoute, noted, rulesOf } from './manage.ts'
import { type NameCheck, placeCheck } from './names.ts'
import { invalid, membersOf } from './read.ts'

/** `/v1/manage/org/rules`: what providers must promise of the organization's data; null is not asked. */
export function dataRuleRoutes({ store, directory }: ManagementRooms): ManageRoute[] {
  const path = '/v1/manage/org/rules'
  const shown = (organization: string) => entry(rulesOf(store, organization).dataRules)
  return [
    { path, answer: ({ organization }) => json(shown(organization)) },
    {
      path,
      method: 'put',
      answer: (asked) => {
        const { organization } = asked
        const members = membersOf(asked.body, ['geolocation', 'data_retention', 'data_used_for_training'])
        const rules = rulesFrom(members, placeCheck(directory()))
        return json(
          noted(store, asked, () => {
            const before = shown(organization)
            store.organizations.setDataRules(organization, rules)
            const after = shown(organization)
            return { result: after, action: 'organization.rules', subject: organization, before, after }
          }),
        )
      },
    },
  ]
}

function entry({ geolocation, data_retention, data_used_for_training }: DataRules): JsonObject {
  return {
    geolocation: geolocation ? [...geolocation] : null,
    data_retention: data_retention ?? null,
    data_used_for_training: data_used_for_training ?? null,
  }
}

function rulesFrom(body: JsonObject, checkPlace: NameCheck): DataRules {
  const geolocation = optional(body.geolocation, 'geolocation', listOf(filledText))
  if (geolocation?.length === 0) throw invalid("'geolocation' is empty: name a place, or write null.", 'geolocation')
  geolocation?.forEach((place, index) => {
    checkPlace(place, `geolocation[${index}]`)
  })
  const retention = optional(body.data_retention, 'data_retention', onlyFalse)
  const training = optional(body.data_used_for_training, 'data_used_for_training', onlyFalse)
  return {
    ...(geolocation && { geolocation: [...new Set(geolocation)] }),
    ...(retention === false && { data_retention: false }),
    ...(training === false && { data_used_for_training: false }),
  }
}

const onlyFalse: Check<false> = (value, path) => {
  return value === false ? false : refuse(path, 'false, or null when it does not matter', value)
}
