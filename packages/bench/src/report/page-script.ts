/**
 * The script of a report's page. It runs in a browser: `drawCharts` is written into the page as text, so it uses nothing
 * outside itself, and only what these few types name.
 */

interface Scale {
  type: string;
  title: { color?: string };
  ticks?: object;
  grid?: object;
}

interface Config {
  data: { datasets: { borderColor?: string; backgroundColor?: string }[] };
  options: { scales: Record<string, Scale>; plugins: { legend: { labels: { color?: string } } } };
}

interface Page {
  readonly Chart: new (canvas: unknown, config: unknown) => { destroy(): void };
  readonly document: {
    readonly documentElement: unknown;
    getElementById(id: string): { readonly textContent: string } | null;
  };
  getComputedStyle(element: unknown): { getPropertyValue(name: string): string };
  matchMedia(query: string): { addEventListener(type: 'change', listener: () => void): void };
}

/** Draws every chart of the page in the colours of its theme, and again when the theme changes. */
export function drawCharts(page: Page): void {
  const element = page.document.getElementById('charts');
  if (element === null) return;
  let drawn: { destroy(): void }[] = [];

  const draw = (): void => {
    for (const chart of drawn) chart.destroy();
    const style = page.getComputedStyle(page.document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    // of a logarithmic axis only 1, 2 and 5 times a power of ten are told
    const tell = (type: string) => (value: number | string) => {
      const number = Number(value);
      const lead = number / 10 ** Math.floor(Math.log10(number) + 1e-9);
      return type !== 'logarithmic' || [1, 2, 5].includes(Math.round(lead * 1e6) / 1e6)
        ? number.toLocaleString('en')
        : '';
    };
    const charts: Record<string, Config> = JSON.parse(element.textContent);
    drawn = Object.entries(charts).map(([id, config]) => {
      for (const dataset of config.data.datasets) {
        if (dataset.borderColor !== undefined) dataset.borderColor = colour(dataset.borderColor);
        if (dataset.backgroundColor !== undefined) dataset.backgroundColor = colour(dataset.backgroundColor);
      }
      for (const scale of Object.values(config.options.scales)) {
        scale.title.color = colour('ink');
        scale.grid = { color: colour('line') };
        scale.ticks =
          scale.type === 'category' ? { color: colour('ink') } : { color: colour('ink'), callback: tell(scale.type) };
      }
      config.options.plugins.legend.labels.color = colour('ink');
      return new page.Chart(page.document.getElementById(id), config);
    });
  };

  draw();
  page.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
}
