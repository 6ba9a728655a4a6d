/** What a CPU profile of V8 says by rooms: the folders of `src`, packages, and the parts of Node. */
import type { Profiler } from 'node:inspector'
import { here } from './subjects.ts'

/** A room and what it calls; `self` and `total` in samples. */
export type Frame = { room: string; self: number; total: number; calls: Map<string, Frame> }

/** The stacks of a profile, where functions of one room that call each other are one frame. */
export function framesOf({ nodes, samples = [] }: Profiler.Profile): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const hits = new Map<number, number>()
  for (const id of samples) hits.set(id, (hits.get(id) ?? 0) + 1)
  const top = frame('all')
  const visit = (node: Profiler.ProfileNode, caller: Frame, path: readonly Frame[]) => {
    const room = roomOf(node.callFrame, caller.room)
    if (room === idle) return
    let own = caller
    let whole = path
    if (room !== caller.room) {
      own = caller.calls.get(room) ?? frame(room)
      caller.calls.set(room, own)
      whole = [...path, own]
    }
    const count = hits.get(node.id) ?? 0
    own.self += count
    for (const each of whole) each.total += count
    for (const id of node.children ?? []) visit(byId.get(id) as Profiler.ProfileNode, own, whole)
  }
  for (const id of nodes[0]?.children ?? []) visit(byId.get(id) as Profiler.ProfileNode, top, [top])
  return top
}

/** Samples in each room itself, the most first. */
export function selfByRoom(top: Frame): [room: string, samples: number][] {
  const found = new Map<string, number>()
  const visit = ({ room, self, calls }: Frame) => {
    found.set(room, (found.get(room) ?? 0) + self)
    for (const called of calls.values()) visit(called)
  }
  for (const called of top.calls.values()) visit(called)
  return [...found].sort(([, one], [, other]) => other - one)
}

/** Samples in each function itself, the most first. */
export function selfByFunction({ nodes, samples = [] }: Profiler.Profile): [name: string, samples: number][] {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, functionName(callFrame)]))
  const found = new Map<string, number>()
  for (const id of samples) {
    const name = names.get(id) ?? ''
    if (name !== idle) found.set(name, (found.get(name) ?? 0) + 1)
  }
  return [...found].sort(([, one], [, other]) => other - one)
}

const idle = '(idle)'

function functionName({ functionName: name, url, lineNumber }: Profiler.ProfileNode['callFrame']): string {
  const file = url.replace(/^file:\/\//, '').replace(`${here}/`, '')
  return url === '' ? name : `${name || '(anonymous)'} ${file}:${lineNumber + 1}`
}

function frame(room: string): Frame {
  return { room, self: 0, total: 0, calls: new Map() }
}

function roomOf({ functionName: name, url }: Profiler.ProfileNode['callFrame'], caller: string): string {
  if (url.startsWith('node:')) return nodeRooms.find(([pattern]) => pattern.test(url))?.[1] ?? 'Node: the rest'
  const inPackage = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1]
  if (inPackage !== undefined) return inPackage
  if (url !== '') return `${/\/src\/([^/]+)\//.exec(url)?.[1] ?? 'src'}/`
  if (name === '(garbage collector)') return 'garbage collection'
  if (name === '(program)') return 'native code without a caller'
  if (systemCalls.test(name)) return 'writes to sockets'
  if (name === idle) return idle
  // Functions of V8, of add-ons and of compiled mappings belong to who calls them.
  return caller === 'all' ? 'native code without a caller' : caller
}

const systemCalls = /^(writev|writeBuffer|write(Utf8|Latin1|Ascii|Ucs2)String)$/

const nodeRooms: readonly [pattern: RegExp, room: string][] = [
  [/http/, 'Node: HTTP server'],
  [/stream|node:net|tls/, 'Node: streams and sockets'],
  [/worker|per_context\/messageport|event_target/, 'Node: messages between threads'],
  [/timers|async_hooks|task_queues|promises|process/, 'Node: timers and turns'],
  [/events/, 'Node: events'],
  [/buffer|string_decoder|encoding/, 'Node: buffers'],
]
