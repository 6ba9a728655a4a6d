import { json, type ManagementRooms, type ManageRoute, noted, rulesOf } from './manage.ts'
import { patternCheck } from './names.ts'
import { invalid, membersOf, namesOfModels, orNull } from './read.ts'

/** `/v1/manage/org/models`: which models the organization may call, by id or as `<provider>/*`; null means all. */
export function approvedModelRoutes({ store, directory }: ManagementRooms): ManageRoute[] {
  const path = '/v1/manage/org/models'
  const shown = (organization: string) => {
    const { approvedModels } = rulesOf(store, organization)
    return { approved_models: approvedModels === null ? null : [...approvedModels] }
  }
  return [
    { path, answer: ({ organization }) => json(shown(organization)) },
    {
      path,
      method: 'put',
      answer: (asked) => {
        const { organization } = asked
        const { approved_models } = membersOf(asked.body, ['approved_models'])
        if (approved_models === undefined) {
          const message = "'approved_models' is missing: it must be an array of models, or null for all."
          throw invalid(message, 'approved_models')
        }
        const models = orNull(namesOfModels)(approved_models, 'approved_models')
        const checkName = patternCheck(directory())
        models?.forEach((name, index) => {
          checkName(name, `approved_models[${index}]`)
        })
        return json(
          noted(store, asked, () => {
            const before = shown(organization)
            store.organizations.approveModels(organization, models)
            const after = shown(organization)
            return { result: after, action: 'organization.models', subject: organization, before, after }
          }),
        )
      },
    },
  ]
}
