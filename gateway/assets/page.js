// Polls the line by its cookie and tells what changed. Everything that differs
// from page to page stands in data attributes, so this text never changes.
(function () {
  var main = document.querySelector('main'), data = main.dataset;
  var wait = +data.poll, url = '/_sluice/v1/sales/' + data.sale + '/line';
  var fails = 0, left = false;

  function put(id, text) {
    var e = document.getElementById(id);
    if (e && e.textContent !== text) e.textContent = text;
  }
  function span(s) {
    return s < 90 ? s + ' seconds' : Math.round(s / 60) + ' minutes';
  }
  function people(n) {
    if (n == null) return '';
    if (n === 0) return 'You are next.';
    return n === 1 ? '1 person is ahead of you.' : n + ' people are ahead of you.';
  }
  function show(p) {
    put('n', p.position == null ? '' : String(p.position));
    put('ahead', people(p.ahead));
    put('eta', p.eta_seconds ? 'About ' + span(p.eta_seconds.low) + ' to ' + span(p.eta_seconds.high) + '.' : '');
    put('likely', p.likely === false
      ? 'There are more people ahead of you than units left. You may wait on, but it is unlikely to reach you.' : '');
  }
  // Another page is due: the server decides which.
  function over(p) {
    return p.state !== data.state || p.code === 'not_found' ||
      (p.reason && p.reason !== data.reason) || (data.opens && Date.now() >= +data.opens);
  }
  function ask() {
    if (left) return;
    fetch(url, { headers: { Accept: 'application/json' }, cache: 'no-store' })
      .then(function (r) { return r.json(); })
      .then(function (p) {
        fails = 0;
        if (over(p)) return location.reload();
        show(p);
        later(p.poll_after_ms);
      })
      .catch(function () {
        fails++;
        later(Math.min(30000, 2000 * Math.pow(2, fails)));
      });
  }
  function later(ms) {
    setTimeout(ask, Math.max(1000, ms || wait));
  }
  function leave() {
    fetch(url, { method: 'DELETE' }).then(function () {
      left = true;
      main.innerHTML = '<h1>You left the line</h1>' +
        '<p>Your place went to the next person. Reload the page to join again.</p>';
    });
  }

  var time = document.querySelector('time');
  if (time) time.textContent = new Date(time.dateTime).toLocaleString();
  if (!wait) return;
  var button = document.getElementById('leave');
  if (button) {
    button.hidden = false;
    button.onclick = leave;
  }
  later(wait);
})();
