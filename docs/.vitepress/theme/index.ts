// The default theme without its font, which would be half of the first load.
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
