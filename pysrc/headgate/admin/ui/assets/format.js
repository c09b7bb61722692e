// Formats numbers and times for display.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(value) {
  return value < 100000 ? whole.format(value) : short.format(value);
}

export function rate(value) {
  if (value === null) return "–";
  if (value === 0) return "0";
  return value < 10 ? value.toFixed(value < 1 ? 2 : 1) : count(value);
}

export function percent(part, all) {
  if (!all) return "0 %";
  const value = (part / all) * 100;
  return `${value > 0 && value < 0.1 ? "<0.1" : value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** Return seconds with a suitable unit. */
export function seconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0 s";
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.1 ? 1 : 0)} ms`;
  return `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

/** Return the text of a histogram bound in seconds. */
export function bound(value) {
  return value < 1 ? `${Number((value * 1000).toFixed(2))} ms` : `${value} s`;
}

export function micros(value) {
  return seconds(value / 1e6);
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let rest = value;
  while (rest >= 1000 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${rest.toFixed(at && rest < 100 ? 1 : 0)} ${units[at]}`;
}

export function money(value) {
  if (value === null) return "–";
  return `$${value < 0.1 && value > 0 ? value.toFixed(6).replace(/0{1,4}$/, "") : value.toFixed(2)}`;
}

/** Return a local time of the day, or with `days` the day; `whole`: with seconds. */
export function clock(time, whole = false, days = false) {
  const options = days ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", ...(whole ? { second: "2-digit" } : {}) };
  return new Intl.DateTimeFormat("en-GB", options).format(new Date(time));
}

/** Return a time as the local one, whole and sortable: 2027-01-31 12:00:05. */
export function local(time) {
  const date = new Date(time);
  const two = (value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function age(milliseconds) {
  const total = Math.max(0, Math.floor(milliseconds / 1000));
  const [days, hours, minutes] = [Math.floor(total / 86400), Math.floor(total / 3600) % 24, Math.floor(total / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${total % 60} s` : `${total} s`;
}

/** Return a quantile of a histogram, interpolated within its bucket; null without observations. */
export function quantile(bounds, counts, share) {
  const all = counts.reduce((sum, one) => sum + one, 0);
  if (!all) return null;
  let rest = all * share;
  for (let at = 0; at < counts.length; at += 1) {
    if (rest <= counts[at] && counts[at]) {
      const low = at ? bounds[at - 1] : 0;
      const high = at < bounds.length ? bounds[at] : bounds[bounds.length - 1];
      return low + (high - low) * (rest / counts[at]);
    }
    rest -= counts[at];
  }
  return bounds[bounds.length - 1];
}
