// The only way in which this page makes elements: text is set as text, never as markup.

// make makes an element with properties and children. The properties "data" and "aria" are objects of attributes; children are elements or text.
export function make(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'data') Object.assign(e.dataset, value);
    else if (name === 'aria') for (const [a, v] of Object.entries(value)) e.setAttribute(`aria-${a}`, v);
    else e[name] = value;
  }
  e.append(...children);
  return e;
}

export function svg(tag, attributes = {}, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// set changes a text, unless it says so already: a screen reader may read what changes.
export function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// table shows rows as a table. A column is {head, of, kind}: of returns the text of a cell, or an
// element. A row is known by its key, and its elements stay, so that focus and selection do. The
// roles say what they are also where a narrow page lays rows out as cards.
export function table(element, columns, rows) {
  const signature = columns.map((c) => c.head).join('\n');
  if (element.dataset.columns !== signature) {
    element.dataset.columns = signature;
    const heads = columns.map((c) => make('th', { scope: 'col', role: 'columnheader', className: c.kind ?? '' }, c.head));
    element.role = 'table';
    element.replaceChildren(make('thead', { role: 'rowgroup' }, make('tr', { role: 'row' }, ...heads)), make('tbody', { role: 'rowgroup' }));
  }
  const body = element.tBodies[0];
  const old = new Map([...body.rows].map((r) => [r.dataset.key, r]));
  rows.forEach((row, at) => {
    let tr = old.get(row.key);
    old.delete(row.key);
    if (!tr) {
      tr = make('tr', { role: 'row', data: { key: row.key } }, ...columns.map((c, i) => (i === 0
        ? make('th', { scope: 'row', role: 'rowheader' })
        : make('td', { role: 'cell', className: c.kind ?? '', data: { head: c.head } }))));
    }
    if (body.rows[at] !== tr) body.insertBefore(tr, body.rows[at] ?? null);
    columns.forEach((c, i) => {
      const cell = tr.cells[i];
      const value = c.of(row, cell.firstElementChild);
      if (value instanceof Element) {
        if (cell.firstChild !== value || cell.childNodes.length > 1) cell.replaceChildren(value);
      } else {
        set(cell, String(value));
        if (!c.kind && i > 0) cell.classList.toggle('zero', value === '0');
      }
    });
  });
  for (const gone of old.values()) gone.remove();
}
