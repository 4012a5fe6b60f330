// What the page's pictures use of Apache ECharts, as one script that sets `echarts`.
import { init, use } from "echarts/core.js";
import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart } from "echarts/charts.js";
import {
  AriaComponent, GraphicComponent, GridComponent, MarkLineComponent, TitleComponent, TooltipComponent, VisualMapContinuousComponent,
} from "echarts/components.js";
import { SVGRenderer } from "echarts/renderers.js";

use([
  BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, AriaComponent, GraphicComponent, GridComponent, MarkLineComponent,
  TitleComponent, TooltipComponent, VisualMapContinuousComponent, SVGRenderer,
]);
globalThis.echarts = { init };
