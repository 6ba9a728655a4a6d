import type { Json, JsonObject } from '../../core/json.ts'
import type { CallForm } from '../../core/parts.ts'
import { type ClientTool, isProviderTool, type Tool } from '../../core/request.ts'
import { joinedName, nativeTool } from './native-tools.ts'

/** The names of functions that stand for the tools of namespaces, and for those whose calls are items of their own types. */
export class FunctionNames {
  readonly #taken: Set<string>
  /** The names by the form of the calls. */
  readonly #byForm = new Map<string, string>()
  readonly #byNamespace = new Map<string, string[]>()

  /** The names of plain tools stay as they are. */
  constructor(tools: readonly Tool[]) {
    this.#taken = new Set(tools.flatMap((tool) => (isProviderTool(tool) ? [] : [tool.name])))
  }

  /** Keeps a name for a plain tool; returns false where another tool has it. */
  take(name: string): boolean {
    const isFree = !this.#taken.has(name)
    this.#taken.add(name)
    return isFree
  }

  /** Gives the functions of a tool names of their own; nothing for a tool whose functions are known already. */
  assign(tool: Tool): Tool[] {
    if (!isProviderTool(tool) || !tool.functions) return [tool]
    const functions = tool.functions.flatMap((one) => this.#named(one))
    return functions.length > 0 ? [{ ...tool, functions }] : []
  }

  #named(tool: ClientTool): ClientTool[] {
    const { form } = tool
    if (!form) return [tool]
    const key = keyOf(form)
    if (this.#byForm.has(key)) return []
    const name = this.#unused(tool.name)
    this.#byForm.set(key, name)
    const { namespace } = form
    if (namespace !== undefined) {
      const others = this.#byNamespace.get(namespace)
      if (others) others.push(name)
      else this.#byNamespace.set(namespace, [name])
    }
    return [{ ...tool, name }]
  }

  #unused(name: string): string {
    let unused = name
    for (let count = 2; this.#taken.has(unused); count++) unused = `${name}_${count}`
    this.#taken.add(unused)
    return unused
  }

  /** Returns the name of a function by the form of its calls; one that is not offered any more has the name that it would have. */
  of(form: CallForm): string {
    return this.#byForm.get(keyOf(form)) ?? joinedName(form.namespace, form.name)
  }

  /** Returns the name of the function that a call or a choice in a namespace is about; undefined where it is about a plain tool. */
  ofForm({ type, name, namespace }: JsonObject): string | undefined {
    if (typeof name !== 'string' || typeof namespace !== 'string' || namespace === '') return undefined
    return this.of({ kind: formOfType(type), name, namespace })
  }

  /** Returns the names of the functions that an entry of a choice allows. */
  chosen(entry: JsonObject): string[] {
    const { type, name } = entry
    if (type === 'namespace') return typeof name === 'string' ? (this.#byNamespace.get(name) ?? []) : []
    const native = nativeTool(type)
    if (native) return this.#byForm.has(native.call) ? [this.of({ kind: native.call, name: native.kind })] : []
    const named = type === 'function' || type === 'custom' ? (this.ofForm(entry) ?? name) : undefined
    return typeof named === 'string' ? [named] : []
  }
}

function formOfType(type: Json | undefined): string {
  return type === 'custom' || type === 'custom_tool_call' ? 'custom' : 'function'
}

/** Tools with items of their own types have no names of their own. */
function keyOf({ kind, name, namespace }: CallForm): string {
  return kind === 'function' || kind === 'custom' ? JSON.stringify([namespace ?? null, name]) : kind
}
