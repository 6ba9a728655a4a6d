import { isObject, type JsonObject } from '../../core/json.ts'
import type { ClientTool } from '../../core/request.ts'

/**
 * The functions that stand for the members of a toolset which the client runs, besides those that it has switched off: what they take is
 * part of the type. undefined for any other tool.
 */
export function toolsetFunctions(type: string, { configs }: JsonObject): ClientTool[] | undefined {
  const [, namespace = ''] = /^([a-z]+)_toolset_\d{8}$/.exec(type) ?? []
  const toolset = Object.hasOwn(toolsets, namespace) ? toolsets[namespace] : undefined
  if (!toolset) return undefined
  const own = isObject(configs) ? configs : {}
  return Object.entries(toolset).flatMap(([name, { says, takes, required = [] }]): ClientTool[] => {
    const config = own[name]
    if (isObject(config) && config.enabled === false) return []
    return [
      {
        kind: 'function',
        name: memberName(namespace, name),
        description: says,
        parameters: { type: 'object', properties: takes, ...(required.length > 0 && { required }) },
        form: { kind: 'function', name, namespace },
      },
    ]
  })
}

/** The name of the function that stands for a member of a toolset. */
export function memberName(toolset: string, name: string): string {
  return `${toolset}__${name}`
}

type Member = { says: string; takes: JsonObject; required?: string[] }

const integer = { type: 'integer' }
const number = { type: 'number' }
const point = { type: 'array', items: integer, description: 'Pixels from the left and from the top: [x, y].' }
const region = { type: 'array', items: integer, description: 'The corners in pixels: [x0, y0, x1, y1].' }
const direction = { type: 'string', enum: ['up', 'down', 'left', 'right'] }
const held = { type: 'string', description: 'Keys to hold down meanwhile, such as ctrl+shift.' }
const keys = { type: 'string', description: 'A key, or keys with + between them, such as ctrl+s.' }
const repeat = { ...integer, description: 'How often the keys are pressed (default: 1).' }
const seconds = { ...number, description: 'Seconds.' }

const click = (what: string): Member => ({
  says: `${what} at a point, or where the mouse is.`,
  takes: { coordinate: point, text: held },
})

const computer: { readonly [name: string]: Member } = {
  key: { says: 'Presses keys.', takes: { text: keys, repeat }, required: ['text'] },
  hold_key: { says: 'Holds keys down.', takes: { text: keys, duration: seconds }, required: ['text', 'duration'] },
  type: { says: 'Types a text.', takes: { text: { type: 'string' } }, required: ['text'] },
  cursor_position: { says: 'Returns where the mouse is, in pixels.', takes: {} },
  mouse_move: { says: 'Moves the mouse without a click.', takes: { coordinate: point }, required: ['coordinate'] },
  left_mouse_down: { says: 'Presses the left mouse button and holds it.', takes: {} },
  left_mouse_up: { says: 'Releases the left mouse button.', takes: {} },
  left_click: click('Clicks'),
  left_click_drag: {
    says: 'Drags from a point to another one.',
    takes: { start_coordinate: point, coordinate: point, text: held },
    required: ['start_coordinate', 'coordinate'],
  },
  right_click: click('Clicks the right mouse button'),
  middle_click: click('Clicks the middle mouse button'),
  double_click: click('Double-clicks'),
  triple_click: click('Triple-clicks'),
  scroll: {
    says: 'Scrolls at a point, or where the mouse is.',
    takes: { coordinate: point, scroll_direction: direction, scroll_amount: integer, text: held },
    required: ['scroll_direction', 'scroll_amount'],
  },
  wait: { says: 'Waits.', takes: { duration: seconds }, required: ['duration'] },
  screenshot: { says: 'Takes a picture of the screen.', takes: {} },
  zoom: { says: 'Takes an enlarged picture of a region of the screen.', takes: { region }, required: ['region'] },
}

const tab = { type: 'string', description: 'The tab, by its id (default: the active one).' }
const coordinate = {
  type: 'object',
  properties: { type: { const: 'coordinate' }, x: number, y: number },
  required: ['type', 'x', 'y'],
  description: 'A point, in pixels of the viewport.',
}
const element = {
  type: 'object',
  properties: { type: { const: 'ref' }, ref: { type: 'string' } },
  required: ['type', 'ref'],
  description: 'An element that read_page or find has returned, such as ref_7.',
}
const place = { anyOf: [coordinate, element] }

/** A member of the browser, which acts in a tab. */
const inTab = (says: string, takes: JsonObject = {}, required: string[] = []): Member => ({
  says,
  takes: { ...takes, tab_id: tab },
  required,
})
const clickIn = (what: string) =>
  inTab(`${what} at a point or on an element.`, { target: place, modifiers: held }, ['target'])

const browser: { readonly [name: string]: Member } = {
  navigate: inTab(
    'Opens an address, or goes back or forward in the history, or reloads the page.',
    { url: { type: 'string', description: 'The address, or back, forward or reload.' } },
    ['url'],
  ),
  list_tabs: { says: 'Lists the open tabs with their ids, titles and addresses.', takes: {} },
  new_tab: { says: 'Opens an empty tab and returns its id.', takes: {} },
  switch_tab: { says: 'Makes a tab the active one.', takes: { tab_id: tab }, required: ['tab_id'] },
  close_tab: { says: 'Closes a tab.', takes: { tab_id: tab }, required: ['tab_id'] },
  read_page: inTab('Returns the elements of the page, or of a part of it, as a tree.', {
    ref: { type: 'string', description: 'The element to begin with (default: the whole page).' },
    depth: { ...integer, description: 'Levels of the tree (default: 15).' },
    filter: { type: 'string', enum: ['interactive', 'all'], description: 'Elements (default: all that are visible).' },
  }),
  get_page_text: inTab('Returns the visible text of the page.'),
  read_console: inTab('Returns what was written to the console since the last time.'),
  read_network: inTab('Returns the network requests since the last time.'),
  find: inTab('Finds elements by a description.', { query: { type: 'string' } }, ['query']),
  form_input: inTab(
    'Sets the value of an element of a form.',
    { target: element, value: { type: ['string', 'number', 'boolean'] } },
    ['target', 'value'],
  ),
  file_upload: inTab(
    'Puts files into an element of a form.',
    {
      target: element,
      paths: { type: 'array', items: { type: 'string' }, description: 'Paths of files.' },
      document_ids: { type: 'array', items: { type: 'string' }, description: 'Files that the client has prepared.' },
    },
    ['target'],
  ),
  scroll_to: inTab('Scrolls an element into view.', { target: element }, ['target']),
  screenshot: inTab('Takes a picture of the viewport.'),
  zoom: inTab('Takes an enlarged picture of a region of the viewport.', { region }, ['region']),
  left_click: clickIn('Clicks'),
  right_click: clickIn('Clicks the right mouse button'),
  middle_click: clickIn('Clicks the middle mouse button'),
  double_click: clickIn('Double-clicks'),
  triple_click: clickIn('Triple-clicks'),
  hover: inTab('Moves the mouse to a point or an element without a click.', { target: place }, ['target']),
  left_click_drag: inTab('Drags from a point to another one.', { from: coordinate, target: coordinate }, [
    'from',
    'target',
  ]),
  left_mouse_down: inTab('Presses the left mouse button and holds it.', { target: coordinate }, ['target']),
  left_mouse_up: inTab('Releases the left mouse button.', { target: coordinate }, ['target']),
  mouse_move: inTab('Moves the mouse without a click.', { target: coordinate }, ['target']),
  scroll: inTab(
    'Scrolls at a point.',
    {
      target: coordinate,
      scroll_direction: direction,
      scroll_amount: { ...integer, description: 'Steps of the mouse wheel (default: 3).' },
    },
    ['target', 'scroll_direction'],
  ),
  type: inTab('Types a text where the focus is.', { text: { type: 'string' } }, ['text']),
  key: inTab('Presses keys.', { text: keys, repeat }, ['text']),
  hold_key: inTab('Holds keys down.', { text: keys, duration: seconds }, ['text', 'duration']),
  wait: inTab('Waits.', { duration: seconds }, ['duration']),
  javascript_exec: inTab(
    'Runs JavaScript in the page and returns the value of its last expression.',
    { text: { type: 'string', description: 'The code, without return.' } },
    ['text'],
  ),
}

const toolsets: { readonly [name: string]: { readonly [name: string]: Member } } = { computer, browser }
