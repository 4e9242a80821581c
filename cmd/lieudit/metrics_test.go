package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/lieudit/guide"
	"lieudit/cmd/lieudit/service"
	"lieudit/eventstore/leveltest"
	"lieudit/schemas/plan"
)

// promtool returns Prometheus's own checker.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	leveltest.Need(t, leveltest.Whole, leveltest.Missing("apt-get install prometheus", err))
	return tool
}

// startMeasuredService starts a service that has a value in every metric: requests were answered, counted and refused, and a
// Meilisearch, which is not there, was asked.
func startMeasuredService(t *testing.T) *testService {
	t.Helper()
	svc := startService(t, func(c *service.Config) {
		c.Demo = true // invents addresses and roads
		c.Meilisearch, c.AddressIndex = "http://127.0.0.1:1", service.MeilisearchIndex
	})
	response, err := svc.client.Get(svc.api + "/services/v1/me")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	svc.runCommand(t, "account open Boutiques --plan BUSINESS --id measured")
	key := strings.TrimSpace(svc.runCommand(t, "key issue measured"))
	for range countedRequests {
		if status := svc.statusOfMe(t, key); status != http.StatusOK {
			t.Fatalf("GET /me: %d", status)
		}
	}
	waitUntil(t, "the metrics are filled", func() bool {
		text := scrape(t, svc)
		return strings.Contains(text, "lieudit_readmodel_lag_events{") && strings.Contains(text, "lieudit_refusals_total{") &&
			strings.Contains(text, "lieudit_database_operation_seconds_count{")
	})
	return svc
}

// countedRequests is how many requests of startMeasuredService are counted.
const countedRequests = 3

func scrape(t *testing.T, svc *testService) string {
	t.Helper()
	response, err := svc.client.Get(svc.ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %d, %v", response.StatusCode, err)
	}
	return string(text)
}

func TestMetricsAreAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	check := exec.CommandContext(t.Context(), tool, "check", "metrics")
	check.Stdin = strings.NewReader(scrape(t, startMeasuredService(t)))
	if out, err := check.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func TestAlertRulesFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	rules, err := guide.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scenes, err := os.ReadFile("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"alerts.yaml": rules, "scenes.yaml": scenes} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "scenes.yaml"}} {
		check := exec.CommandContext(t.Context(), tool, args...)
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(scenes), "alertname=\""+alert[1]+"\"") {
			t.Errorf("no scene tests %s", alert[1])
		}
	}
}

// A metric that is renamed, or not there any more, would leave an alert silent and a panel empty.
func TestAlertsDashboardAndChapterNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	text := scrape(t, startMeasuredService(t))
	chapter, err := guide.FindChapter("metrics")
	if err != nil {
		t.Fatal(err)
	}
	alerts, alertsErr := guide.ReadFile("monitoring/alerts.yaml")
	dashboard, dashboardErr := guide.ReadFile("monitoring/dashboard.json")
	if alertsErr != nil || dashboardErr != nil {
		t.Fatal(alertsErr, dashboardErr)
	}
	if !json.Valid(dashboard) {
		t.Error("the dashboard is no JSON")
	}
	existing := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		existing[m[1]] = true
		if m[2] == "histogram" {
			existing[m[1]+"_bucket"], existing[m[1]+"_count"], existing[m[1]+"_sum"] = true, true, true
		}
	}
	existing["lieudit_vintage_age_seconds"], existing["lieudit_road_network_age_seconds"] = true, true // invented data has no age
	name := regexp.MustCompile(`\b(?:lieudit|process|go)_[a-z_]+`)
	for file, content := range map[string]string{"alerts.yaml": string(alerts), "dashboard.json": string(dashboard), "the chapter": chapter.Text} {
		used := name.FindAllString(content, -1)
		if len(used) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, metric := range used {
			if !existing[metric] {
				t.Errorf("%s names %s, which no instance has", file, metric)
			}
		}
	}
	for metric := range existing {
		isPart := strings.HasSuffix(metric, "_bucket") || strings.HasSuffix(metric, "_count") || strings.HasSuffix(metric, "_sum")
		if strings.HasPrefix(metric, "lieudit_") && !isPart && !slices.Contains(name.FindAllString(chapter.Text, -1), metric) {
			t.Errorf("the chapter does not explain %s", metric)
		}
	}
}

func TestWhatIsCountedIsMeasuredByShard(t *testing.T) {
	t.Parallel()
	began := time.Now()
	svc := startMeasuredService(t)
	want := strconv.Itoa(countedRequests)
	shard := fmt.Sprintf(`{month=%q,shard="0"}`, plan.DateOf(time.Now()).String()[:len("2026-11")])
	for _, metric := range []string{"lieudit_usage_requests_total", "lieudit_usage_shard_requests_total" + shard} {
		if got := svc.metricValue(t, metric); got != want {
			t.Errorf("%s is %q, want %s", metric, got, want)
		}
	}
	all, ofShard := svc.metricValue(t, "lieudit_usage_events_total"), svc.metricValue(t, "lieudit_usage_shard_events_total"+shard)
	if all != ofShard || ofShard < "1" {
		t.Errorf("%s events were written, %s in shard 0", all, ofShard)
	}
	work := svc.metricValue(t, "lieudit_usage_shard_work_seconds_total"+shard)
	if seconds, err := strconv.ParseFloat(work, 64); err != nil || seconds <= 0 || seconds > time.Since(began).Seconds() {
		t.Errorf("three requests took %q seconds to count", work)
	}
}

func TestTheLagOfAReadModelIsMeasuredInEventsAndSeconds(t *testing.T) {
	t.Parallel()
	svc := startMeasuredService(t)
	waitUntil(t, "the read model has caught up", func() bool {
		return svc.metricValue(t, `lieudit_readmodel_lag_events{model="register"}`) == "0" &&
			svc.metricValue(t, `lieudit_readmodel_lag_seconds{model="register"}`) == "0"
	})
	if age := svc.metricValue(t, "lieudit_keyring_age_seconds"); age == "NaN" || strings.HasPrefix(age, "-") {
		t.Errorf("the key ring's age is %s", age)
	}
	for _, metric := range []string{`lieudit_log_append_seconds_count{log="core"}`, `lieudit_log_sync_seconds_count{log="core"}`} {
		if got := svc.metricValue(t, metric); got == "" || got == "0" {
			t.Errorf("%s is %q", metric, got)
		}
	}
}
