package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
)

// at is the same visitor before another instance.
func (v visitor) at(svc *testService) visitor {
	v.svc = svc
	return v
}

// behindOneName makes an instance one of several that people reach under one address.
func behindOneName(n *testNode) func(*service.Config) {
	return func(c *service.Config) {
		withNode(n)(c)
		c.AreaURL = &url.URL{Scheme: "http", Host: "localhost:9999"}
	}
}

// TestASessionIsOfAllInstances opens a session at one instance, uses it at another, and ends it there.
func TestASessionIsOfAllInstances(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	first := startService(t, behindOneName(n))
	second, err := tryStartService(t, behindOneName(n)) // the first has the operator's token
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the second instance is ready", func() bool { return second.isReady(t) })
	first.host, second.host, second.operator = "localhost:9999", "localhost:9999", first.operator
	v := first.visit(t, "operator", "")
	if got := v.at(second).get(t, "/sessions"); got.status != http.StatusOK {
		t.Fatalf("at the second instance: %d", got.status)
	}
	if got := v.at(second).post(t, "/sortie", url.Values{}); got.status != http.StatusSeeOther {
		t.Fatalf("leaving at the second instance: %d", got.status)
	}
	waitUntil(t, "the first instance knows within a second", func() bool { return v.get(t, "/sessions").status == http.StatusSeeOther })
}

// TestASessionOutlivesARestart stops a service and starts it on the same data: whoever was in is in.
func TestASessionOutlivesARestart(t *testing.T) {
	t.Parallel()
	svc := startService(t, func(*service.Config) {})
	v := svc.visit(t, "operator", "")
	svc.stop()
	again := startService(t, func(c *service.Config) { c.Data = svc.data })
	if got := v.at(again).get(t, "/sessions"); got.status != http.StatusOK {
		t.Errorf("after the restart: %d", got.status)
	}
	stranger := startService(t, func(*service.Config) {})
	if got := v.at(stranger).get(t, "/sessions"); got.status != http.StatusSeeOther {
		t.Errorf("at another service: %d, want 303 to the login", got.status)
	}
}

// TestWhileTheLogIsSilentAPageSaysSo keeps the log silent. Pages answer 503 with what to do, a form keeps what was typed, nothing is
// written, and the pages answer again by themselves.
func TestWhileTheLogIsSilentAPageSaysSo(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	svc := startService(t, withNode(n))
	svc.runCommand(t, `account open "Mairie de Mende" --plan STARTER --id mende`)
	v := svc.visit(t, "operator", "")
	typed := url.Values{"role": {"customer"}, "account": {"mende"}, "label": {"service <des> eaux"}}
	n.silence.Begin()
	waitUntil(t, "the pages say that the service cannot answer", func() bool {
		got := v.get(t, "/sessions")
		return got.status == http.StatusServiceUnavailable && strings.Contains(got.text, "Rien n’a été fait ni perdu")
	})
	got := v.post(t, "/invitation", typed)
	n.silence.End()
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.text, "service &lt;des&gt; eaux</textarea>") || !strings.Contains(got.text, `action="/invitation"`) {
		t.Errorf("the form: %d %s", got.status, got.text)
	}
	waitUntil(t, "the pages answer again", func() bool { return v.get(t, "/sessions").status == http.StatusOK })
	if listed := svc.runCommand(t, "token list --json"); strings.Contains(listed, "eaux") {
		t.Errorf("the form that was answered 503 was carried out: %s", listed)
	}
	if got := v.post(t, "/invitation", typed); got.status != http.StatusOK || !strings.Contains(got.text, "/entree/") {
		t.Errorf("the same form again: %d %s", got.status, got.text)
	}
}

// TestASessionEndsByTheClockOfTheService puts the clock of a service forward: a session ends when its time is over, neither before nor
// after, whatever the clock of the browser says.
func TestASessionEndsByTheClockOfTheService(t *testing.T) {
	t.Parallel()
	clock := newMachineClock()
	svc := clock.startServiceAt(t, t.TempDir(), asConfigured)
	operator := svc.visit(t, "operator", "")
	clock.slept.Add(int64(11 * time.Hour))
	if got := operator.get(t, "/sessions"); got.status != http.StatusOK {
		t.Errorf("an hour before its end: %d", got.status)
	}
	clock.slept.Add(int64(2 * time.Hour))
	waitUntil(t, "the session has ended", func() bool { return operator.get(t, "/sessions").status == http.StatusSeeOther })
}
