// The default theme without its font, which would be half of the first load, and with a page for addresses that do not exist.
import theme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import './style.css'

const notFound = () =>
  h('main', { class: 'not-found' }, [h('h1', 'There is no such page'), h('p', 'Use the search or the menu to find what you look for.')])

export default { extends: theme, Layout: () => h(theme.Layout, null, { 'not-found': notFound }) }
