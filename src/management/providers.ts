import { readFile } from 'node:fs/promises'
import { chat } from '../api/chat/api.ts'
import { filledText, oneOf, optional, required } from '../api/check.ts'
import { messages } from '../api/messages/api.ts'
import { responses } from '../api/responses/api.ts'
import { chatKind } from '../call/kinds/chat.ts'
import { tryRequest } from '../call/kinds/try.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import { withoutKeys } from '../core/secrets.ts'
import { servedBy, type Target } from '../manifest/target.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { redact } from '../upstream/auth/secrets.ts'
import { concerning } from './health.ts'
import { timeText } from './key-entry.ts'
import {
  json,
  type ManagementContext,
  type ManageRequest,
  type ManageRoute,
  mayOperate,
  missing,
  pathPart,
} from './manage.ts'
import { type KnownProvider, knownProviders, problemEntry, providerEntry } from './provider-entry.ts'
import { invalid, membersOf, parametersOf } from './read.ts'

/** `/v1/manage/providers`: the providers, what each needs, how it is, and what it would be sent. */
export function providerRoutes(context: ManagementContext): ManageRoute[] {
  const { watch, troubled, explaining, store } = context
  const read = ({ organization }: ManageRequest) => {
    const snapshot = watch.current()
    return { snapshot, ...knownProviders(snapshot, watch.problems(), concerning(organization, troubled())) }
  }
  const found = (request: ManageRequest) => {
    const slug = pathPart(request, 'slug')
    const { snapshot, providers } = read(request)
    return { snapshot, known: providers.find((one) => one.slug === slug) ?? missing('provider', slug) }
  }
  return [
    {
      path: '/v1/manage/providers',
      handle(request) {
        parametersOf(request.query, [])
        const { snapshot, providers, others } = read(request)
        return json({
          providers: providers.map((known) => providerEntry(known, snapshot)),
          problems: others.map((problem) => problemEntry(problem, snapshot.config.path)),
          generation: snapshot.generation,
          reloaded_at: timeText(snapshot.builtAt),
        })
      },
    },
    {
      path: '/v1/manage/providers/:slug',
      async handle(request) {
        parametersOf(request.query, [])
        const { snapshot, known } = found(request)
        const entry = providerEntry(known, snapshot)
        if (!mayOperate(request.key, store)) return json(entry)
        return json({ ...entry, manifest: { file: String(entry.origin), text: await manifestText(known, snapshot) } })
      },
    },
    {
      path: '/v1/manage/providers/:slug/try',
      method: 'post',
      reads: true,
      async handle(request) {
        const { snapshot, known } = found(request)
        const { model, body, kind } = triedIn(request.body)
        const targetFor = (asked: NeutralRequest) => targetOf(known, model, { snapshot, asked })
        const { key } = request
        return json({ ...(await tryRequest({ key, kind, body, targetFor }, explaining())) })
      },
    },
  ]
}

const kinds = { chat: chatKind(chat), messages: chatKind(messages), responses: chatKind(responses) }

function triedIn(sent: ManageRequest['body']) {
  const members = membersOf(sent, ['model', 'request', 'api'])
  const model = required(members.model, 'model', "the provider's id of a model", filledText)
  const { request } = members
  if (!isObject(request)) throw invalid("'request' must be an object: a request as a client would send it.", 'request')
  const kind = kinds[optional(members.api, 'api', oneOf(['chat', 'messages', 'responses'])) ?? 'chat']
  return { model, kind, body: { ...request, model } satisfies JsonObject }
}

/** Also of a provider that is not configured: nothing is sent. Throws RouterError 400. */
function targetOf(
  { slug, provider: named }: KnownProvider,
  model: string,
  { snapshot, asked }: { snapshot: Snapshot; asked: NeutralRequest },
): Target {
  if (!named) throw invalid(`The provider '${slug}' is not in use: it is switched off, or its files have problems.`)
  const identified = snapshot.catalog.identify(slug, model)
  if (!identified && named.unknownModels === 'refuse')
    throw invalid(`The provider '${slug}' has no model '${model.slice(0, 100)}'.`, 'model')
  const provider = servedBy(named, identified?.is ?? model, { request: asked, entry: identified?.entry })
  if (!provider.chat)
    throw invalid(`'${slug}/${model.slice(0, 100)}' is no chat model: only those can be tried.`, 'model')
  if (!identified) return { provider, model }
  const { entry, is } = identified
  return { provider, model: identified.model, entry, ...(is !== identified.model && { is }) }
}

/** As the file is now, where it has problems: then nothing says that its secrets are where they belong. Never with a secret. */
async function manifestText({ file, provider, problems }: KnownProvider, { sources }: Snapshot): Promise<string> {
  const known = sources.get(file)?.text ?? ''
  const isBroken = problems.length > 0
  const text = isBroken ? await readFile(file, 'utf8').catch(() => known) : known
  const served = provider ? [provider, ...(provider.variants ?? []).map((variant) => variant.provider)] : []
  const shown = (line: string) => served.reduce((left, one) => redact(one, left), withoutLiteral(line))
  return text
    .split('\n')
    .map((line) => (isBroken ? withoutKeys(shown(line)) : shown(line)))
    .join('\n')
}

/** Secrets are references to the environment. What stands in place of one is a mistake that is shown to nobody. */
function withoutLiteral(line: string): string {
  return line.replace(secretMember, (whole, name: string, value: string) =>
    /^["']?\$\{\w+(?::-)?\}["']?$/.test(value) ? whole : `${name}[secret]`,
  )
}

const secretMember =
  /((?:\b|_)(?:secret|access_key|secret_key|session_token|client_secret|credentials|bearer|password)["']?\s*:\s*)("[^"]*"|'[^']*'|(?:\$\{[^}]*\}|[^\s,}#])+)/gi
