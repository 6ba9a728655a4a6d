import type { Json, JsonObject } from '../../core/json.ts'
import type { ClientTool } from '../../core/request.ts'
import { toolsetFunctions } from './toolsets.ts'

/**
 * The functions that stand for tools of this API that the client runs: their input is described by Anthropic's documentation instead of
 * a schema in the request.
 */
export function clientFunctions(type: string, tool: JsonObject): ClientTool[] | undefined {
  const [, family = ''] = /^([a-z_]+)_\d{8}$/.exec(type) ?? []
  const offer = Object.hasOwn(offers, family) ? offers[family] : undefined
  if (!offer) return toolsetFunctions(type, tool)
  if (typeof tool.name !== 'string' || tool.name === '') return undefined
  return [{ kind: 'function', name: tool.name, ...offer(tool, type) }]
}

type Offer = (tool: JsonObject, type: string) => Pick<ClientTool, 'description' | 'parameters'>

const string = { type: 'string' }
const integer = { type: 'integer' }
const range = { type: 'array', items: integer, description: 'For view: the first and the last line; -1 is the end.' }
const point = { type: 'array', items: integer, description: 'Pixels from the left and from the top: [x, y].' }

const bash: Offer = () => ({
  description: 'Runs a command in a persistent bash session, and returns its output.',
  parameters: {
    type: 'object',
    properties: {
      command: { ...string, description: 'The command. Required unless the session is restarted.' },
      restart: { type: 'boolean', description: 'Restarts the session.' },
    },
  },
})

const textEditor: Offer = (_tool, type) => ({
  description: 'Views, creates and edits text files. `old_str` must match exactly one place in the file.',
  parameters: {
    type: 'object',
    properties: {
      command: { ...string, enum: [...editCommands, ...(undoing.test(type) ? ['undo_edit'] : [])] },
      path: { ...string, description: 'The path of the file; view also takes a directory.' },
      view_range: range,
      file_text: { ...string, description: 'For create: the content of the file.' },
      old_str: { ...string, description: 'For str_replace: the text to replace.' },
      new_str: { ...string, description: 'For str_replace: the text in its place.' },
      insert_line: { ...integer, description: 'For insert: the line after which the text goes; 0 is the beginning.' },
      insert_text: { ...string, description: 'For insert: the text.' },
    },
    required: ['command', 'path'],
  },
})

const editCommands = ['view', 'create', 'str_replace', 'insert']

/** The versions that can undo an edit. */
const undoing = /^text_editor_(2024|20250124)/

const memory: Offer = () => ({
  description: 'Reads and writes files of a memory that outlasts the conversation, in the directory /memories.',
  parameters: {
    type: 'object',
    properties: {
      command: { ...string, enum: [...editCommands, 'delete', 'rename'] },
      path: { ...string, description: 'The path below /memories, for all commands but rename.' },
      view_range: range,
      file_text: { ...string, description: 'For create: the content of the file.' },
      old_str: { ...string, description: 'For str_replace: the text to replace.' },
      new_str: { ...string, description: 'For str_replace: the text in its place.' },
      insert_line: { ...integer, description: 'For insert: the line after which the text goes.' },
      insert_text: { ...string, description: 'For insert: the text.' },
      old_path: { ...string, description: 'For rename: the present path.' },
      new_path: { ...string, description: 'For rename: the new path.' },
    },
    required: ['command'],
  },
})

const actions = ['key', 'type', 'mouse_move', 'left_click', 'left_click_drag', 'right_click', 'middle_click'].concat([
  'double_click',
  'screenshot',
  'cursor_position',
])

/** The actions of the versions from 2025 on. */
const laterActions = ['left_mouse_down', 'left_mouse_up', 'scroll', 'hold_key', 'wait', 'triple_click']

const computer: Offer = ({ display_width_px, display_height_px, enable_zoom }, type) => ({
  description: `Uses the mouse and the keyboard of a computer with a screen of ${pixels(display_width_px)} x ${pixels(display_height_px)} pixels, and takes screenshots of it.`,
  parameters: {
    type: 'object',
    properties: {
      action: {
        ...string,
        enum: [...actions, ...(type.startsWith('computer_2024') ? [] : laterActions), ...(enable_zoom ? ['zoom'] : [])],
      },
      coordinate: point,
      start_coordinate: { ...point, description: 'For left_click_drag: where it begins, [x, y].' },
      text: { ...string, description: 'The text to type, or the keys to press, such as ctrl+s.' },
      duration: { type: 'number', description: 'For hold_key and wait. Seconds.' },
      scroll_direction: { ...string, enum: ['up', 'down', 'left', 'right'] },
      scroll_amount: { ...integer, description: 'For scroll: the number of steps.' },
      ...(enable_zoom === true && {
        region: { type: 'array', items: integer, description: 'For zoom: the corners, [x1, y1, x2, y2].' },
      }),
    },
    required: ['action'],
  },
})

function pixels(value: Json | undefined): Json {
  return typeof value === 'number' ? value : '?'
}

const offers: { readonly [family: string]: Offer } = { bash, text_editor: textEditor, memory, computer }
