// A curve as SVG: a logarithmic x axis, a y axis from zero, one line a series. Used by main.
// Separate because it is drawing; nothing here knows what is measured.

/** One line of a curve. */
export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Curve {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
}

const WIDTH = 640;
const HEIGHT = 320;
const LEFT = 64;
const RIGHT = 16;
const TOP = 40;
const BOTTOM = 72;
const COLOURS = ["#1f6feb", "#d1242f", "#1a7f37", "#8250df"];
const GRID_LINES = 4;

/** The whole file. Zero on the x axis stands a step left of the least other value. */
export function toSvg({ title, x, y, series }: Curve): string {
  const places = [...new Set(series.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const least = places.find((place) => place > 0) ?? 1;
  const toLog = (value: number): number => Math.log(value === 0 ? least / 4 : value);
  const first = toLog(places[0] ?? 1);
  const last = toLog(places.at(-1) ?? 1);
  const top = nice(Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value))));
  const toX = (value: number): number =>
    LEFT + ((toLog(value) - first) / Math.max(last - first, 1e-9)) * (WIDTH - LEFT - RIGHT);
  const toY = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const parts: string[] = [];
  for (let line = 0; line <= GRID_LINES; line++) {
    const value = (top * line) / GRID_LINES;
    parts.push(
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(toY(value))}" y2="${at(toY(value))}" stroke="#8b949e" stroke-opacity="0.3"/>`,
      text(LEFT - 6, toY(value) + 4, short(value), "end"),
    );
  }
  for (const place of places) parts.push(text(toX(place), HEIGHT - BOTTOM + 16, short(place), "middle"));
  series.forEach(({ name, points }, index) => {
    const colour = COLOURS[index % COLOURS.length];
    const line = points.map(([px, py]) => `${at(toX(px))},${at(toY(py))}`).join(" ");
    parts.push(`<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const [px, py] of points)
      parts.push(`<circle cx="${at(toX(px))}" cy="${at(toY(py))}" r="3" fill="${colour}"/>`);
    const left = LEFT + index * 180;
    parts.push(
      `<line x1="${left}" x2="${left + 18}" y1="${HEIGHT - 14}" y2="${HEIGHT - 14}" stroke="${colour}" stroke-width="2"/>`,
      text(left + 24, HEIGHT - 10, name, "start"),
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#57606a">
<title>${escaped(title)}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>
<text x="${LEFT}" y="20" font-size="14" fill="#1f2328">${escaped(title)}</text>
${text(LEFT, TOP - 6, y, "start")}
${text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 36, x, "middle")}
${parts.join("\n")}
</svg>
`;
}

function text(x: number, y: number, words: string, anchor: string): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}">${escaped(words)}</text>`;
}

function at(value: number): string {
  return value.toFixed(1);
}

/** The next of 1, 2, 4, 8 times a power of ten: its quarters are easy to read. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return ([1, 2, 4, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}

function short(value: number): string {
  if (value >= 2 ** 20 && value % 2 ** 20 === 0) return `${value / 2 ** 20} Mi`;
  if (value >= 1024 && value % 1024 === 0) return `${value / 1024} Ki`;
  return value >= 10_000 ? `${value / 1000} k` : `${value}`;
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
