import { RouterError } from '../core/errors.ts'
import type { ModelEntry } from '../core/model.ts'
import type { Provider } from '../manifest/provider.ts'
import { servedBy, type Target } from '../manifest/target.ts'

/** What names are resolved against: the providers and models of one snapshot. */
export type Directory = {
  providers: ReadonlyMap<string, Provider>
  findModel(provider: string, model: string): ModelEntry | undefined
}

/** The targets of a model string, in the order in which they are to be asked. Throws RouterError 404. */
export function resolve(model: string, directory: Directory): Target[] {
  if (model.length > longestModel) throw notFound(`No model has a name of more than ${longestModel} characters.`)
  if (!model.isWellFormed()) throw notFound('No model has a name that is cut in the middle of a character.')
  const slash = model.indexOf('/')
  if (slash <= 0 || slash === model.length - 1) {
    throw notFound(
      `The model '${model}' does not exist. Write a model as <provider>/<model>; GET /v1/models lists them.`,
    )
  }
  const slug = model.slice(0, slash)
  const name = model.slice(slash + 1)
  const named = directory.providers.get(slug)
  if (!named) throw notFound(`The provider '${slug}' of the model '${model}' does not exist.`)
  const provider = servedBy(named, name)
  if (provider.missing.length > 0) {
    const variables = provider.missing.join(', ')
    throw notFound(`The provider '${slug}' is not configured: set ${variables} in the environment of the router.`)
  }
  if (!provider.chat) throw notFound(`The provider '${slug}' has no chat models.`)
  const entry = directory.findModel(slug, name)
  if (!entry && provider.unknownModels === 'refuse') {
    throw notFound(`The provider '${slug}' has no model '${name}' in the catalog. GET /v1/models lists the models.`)
  }
  return [{ provider, model: name, ...(entry && { entry }) }]
}

/** Where unknown models pass, names travel in headers, rows and addresses. Characters. */
const longestModel = 256

function notFound(message: string): RouterError {
  return new RouterError('model_not_found', message, { param: 'model' })
}
