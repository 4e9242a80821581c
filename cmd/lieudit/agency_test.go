package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/body"
)

// exhaustQuota asks with keys in turn until none is served any more, and returns how many requests were.
func (svc *testService) exhaustQuota(t *testing.T, keys ...string) (served int) {
	t.Helper()
	for len(keys) > 0 {
		switch got := svc.getJSON(t, keys[0], "/me", &struct{}{}); got {
		case http.StatusOK:
			served++
			keys = append(keys[1:], keys[0])
		case http.StatusTooManyRequests:
			keys = keys[1:]
		case http.StatusServiceUnavailable: // a busy machine has no time for keys
		default:
			t.Fatalf("/me: %d", got)
		}
	}
	return served
}

// quotaAttempt is a request and the status that it should come to.
type quotaAttempt struct {
	target, body string
	want         int
}

// quotaAttempts are requests that would give an agency of GROWTH with 12 requests a month, or its sub-client, more than that.
func quotaAttempts(id string) []quotaAttempt {
	return []quotaAttempt{
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":13}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":99999999999}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":9223372036854775808}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":1e30}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":-1}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"GROWTH","quota":0}`, 422},
		{"POST /accounts/" + id + ":plan", `{"plan":"BUSINESS"}`, 409},
		{"POST /accounts/" + id + ":plan", `{"plan":"BUSINESS","quota":5}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":null}`, 409},
		{"POST /accounts/" + id + ":agency", `{}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":"rival"}`, 409},
		{"POST /accounts/" + id + ":agency", `{"agence_de":"theirs"}`, 409},
		{"POST /accounts/" + id + ":erase", `{}`, 403},
		{"POST /accounts/agency:plan", `{"plan":"BUSINESS","quota":99}`, 404},
		{"POST /accounts/agency:agency", `{"agence_de":null}`, 404},
		{"POST /accounts/agency:close", `{"id":"agency"}`, 404},
		{"POST /accounts/rival:plan", `{"plan":"BUSINESS","quota":99}`, 404},
		{"POST /accounts/theirs:plan", `{"plan":"GROWTH","quota":9}`, 404},
		{"POST /accounts/theirs:close", `{"id":"theirs"}`, 404},
		{"POST /accounts/theirs/keys", `{"kind":"secret","label":"x"}`, 404},
		{"GET /accounts/theirs/usage", "", 404},
		{"POST /accounts", `{"id":"mine","nom":"x","plan":"GROWTH"}`, 422},
		{"POST /accounts", `{"id":"theirs","nom":"x","plan":"GROWTH"}`, 422},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","quota":13}`, 422},
		{"POST /accounts", `{"nom":"x","plan":"BUSINESS"}`, 409},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","agence_de":"rival"}`, 409},
		{"POST /accounts", `{"nom":"x","plan":"GROWTH","agence_de":null}`, 422},
		{"POST /tokens", `{"role":"operator","label":"x"}`, 403},
		{"POST /usage:adjust", `{}`, 403},
	}
}

// TestAnAgencyCannotSellItselfVolume tries, with the agency's own token, every way to more requests than its contract has.
func TestAnAgencyCannotSellItselfVolume(t *testing.T) {
	t.Parallel()
	var clockOffset atomic.Int64
	svc := startService(t, func(c *service.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }
	})
	const contract = 12
	svc.runCommand(t, fmt.Sprintf("account open Gévaudan --plan GROWTH --id agency --quota %d", contract))
	svc.runCommand(t, "account agency agency")
	svc.runCommand(t, "account open Rivale --plan BUSINESS --id rival")
	svc.runCommand(t, "account agency rival")
	svc.runCommand(t, "account open Mende --plan BUSINESS --id theirs --agency-of rival")
	svc.runCommand(t, "account open Florac --plan GROWTH --id sold --quota 99999999999 --agency-of agency") // as an older release let an agency do
	agent := strings.TrimSpace(svc.runCommand(t, "token issue --role agency --account agency --label agent"))

	status, text := svc.sendToArea(t, agent, "POST /accounts", `{"nom":"Langogne","plan":"GROWTH"}`)
	var opened body.Account
	if err := json.Unmarshal([]byte(text), &opened); err != nil || status != http.StatusCreated || opened.Quota != contract {
		t.Fatalf("a sub-client without a quota: %d, %s, want 201 with the contract's %d", status, text, contract)
	}
	for _, id := range []string{opened.ID, "sold"} {
		for _, c := range quotaAttempts(id) {
			if got, text := svc.sendToArea(t, agent, c.target, c.body); got != c.want {
				t.Errorf("%s %s: %d, want %d: %s", c.target, c.body, got, c.want, text)
			}
		}
	}

	keys := []string{strings.TrimSpace(svc.runCommand(t, "key issue sold")), strings.TrimSpace(svc.runCommand(t, "key issue "+opened.ID)),
		strings.TrimSpace(svc.runCommand(t, "key issue agency"))}
	if got := svc.exhaustQuota(t, keys...); got != contract {
		t.Errorf("%d requests were served to an agency and its sub-clients, want %d", got, contract)
	}

	svc.runCommand(t, "account agency sold --leave")
	if got, text := svc.sendToArea(t, agent, "POST /accounts/sold:plan", `{"plan":"GROWTH","quota":12}`); got != 409 {
		t.Errorf("terms of one that leaves: %d, want 409: %s", got, text)
	}
	svc.runCommand(t, "account plan agency GROWTH --quota 5") // from the next period on
	if got, text := svc.sendToArea(t, agent, "POST /accounts/"+opened.ID+":plan", `{"plan":"GROWTH","quota":6}`); got != 422 {
		t.Errorf("more than the contract is about to have: %d, want 422: %s", got, text)
	}
	clockOffset.Store(int64(32 * 24 * time.Hour))
	waitUntil(t, "the sub-client to have left", func() bool {
		got, _ := svc.sendToArea(t, agent, "GET /accounts/sold", "")
		return got == http.StatusNotFound
	})
	if _, text := svc.sendToArea(t, agent, "GET /accounts", ""); strings.Contains(text, "sold") {
		t.Errorf("its former agency lists it still: %s", text)
	}
	var me body.Me
	waitUntil(t, "its key to be served again", func() bool { return svc.getJSON(t, keys[0], "/me", &me) == http.StatusOK })
	if me.Quota.Limit != 500_000 || me.Agency != "" {
		t.Errorf("who left has %d requests a month of %q, want its plan's 500000", me.Quota.Limit, me.Agency)
	}
	if got := svc.exhaustQuota(t, keys[1:]...); got != 5 {
		t.Errorf("%d requests were served in the next period, want the 5 of the contract", got)
	}
}
