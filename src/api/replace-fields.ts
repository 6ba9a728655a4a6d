import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { isProviderTool, type NeutralRequest, type Tool } from '../core/request.ts'

/** Fields of a request that are written anew: `made` is a body of the same API that has them, `before` and `after` the tools by index. */
export type Replacement = {
  fields: ReadonlySet<keyof NeutralRequest>
  made: JsonObject
  before: readonly Tool[]
  after: readonly Tool[]
}

/** A client's body with some fields as another body of the same API has them. The client's own is not changed. */
export function withReplacedFields(
  body: JsonObject,
  { fields, made, before, after }: Replacement,
  wireNames: (field: string) => readonly string[],
): JsonObject {
  let edited = body
  for (const field of fields) {
    if (field === 'tools' && Array.isArray(edited.tools)) {
      edited = { ...edited, tools: replacedTools(edited.tools, made.tools, { before, after }) }
      continue
    }
    for (const name of wireNames(field)) edited = withPathOf(edited, made, name.split('.'))
  }
  return edited
}

/** Only tools that changed are replaced: the others keep members that the neutral form does not have. */
function replacedTools(
  tools: readonly Json[],
  made: Json | undefined,
  { before, after }: Pick<Replacement, 'before' | 'after'>,
): Json[] {
  const byName = new Map((Array.isArray(made) ? made : []).map((tool) => [nameOf(tool), tool]))
  const replaced = new Map<string, Json>()
  for (const [index, tool] of before.entries()) {
    const changed = after[index]
    if (changed === undefined || changed === tool || isProviderTool(tool) || isProviderTool(changed)) continue
    const own = byName.get(changed.name)
    if (own !== undefined) replaced.set(tool.name, own)
  }
  return tools.map((tool) => replaced.get(nameOf(tool) ?? '') ?? tool)
}

/** The name of a tool in any client API. */
function nameOf(tool: Json): string | undefined {
  if (!isObject(tool)) return undefined
  const named = [tool, tool.function, tool.custom].find((one) => isObject(one) && typeof one.name === 'string')
  return isObject(named) ? String(named.name) : undefined
}

/** A body with the value at a path as another one has it, or without one. A path into a list names none of its items. */
function withPathOf(body: JsonObject, made: JsonObject, [name = '', ...rest]: readonly string[]): JsonObject {
  const [mine, own] = [body[name], made[name]]
  if (rest.length === 0) return withMember(body, name, own)
  if (Array.isArray(mine) || Array.isArray(own)) return body
  const inner = withPathOf(isObject(mine) ? mine : {}, isObject(own) ? own : {}, rest)
  return withMember(body, name, Object.keys(inner).length > 0 ? inner : undefined)
}

function withMember(body: JsonObject, name: string, value: Json | undefined): JsonObject {
  if (value !== undefined) return { ...body, [name]: value }
  if (!Object.hasOwn(body, name)) return body
  const { [name]: _gone, ...others } = body
  return others
}
