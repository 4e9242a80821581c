package profile

import (
	"strconv"
	"strings"
	"time"
)

// kilometresPerMile is the length of a mile. Limits on British roads are in miles an hour.
const kilometresPerMile = 1.609344

// namedLimits are the limits in km/h of values such as FR:urban, by what follows the country.
var namedLimits = map[string]float64{
	"living_street": 20, "zone20": 20, "zone30": 30, "30": 30, "50": 50, "urban": 50, "rural": 80, "trunk": 110, "motorway": 130,
	"nsl_single": 60 * kilometresPerMile, "nsl_dual": 70 * kilometresPerMile,
}

// countryLimits are the named limits that differ elsewhere, in countries whose roads a French map reaches.
var countryLimits = map[string]float64{
	"be:motorway": 120, "be:rural": 70, "be-vlg:rural": 70, "be-wal:rural": 90, "be-bru:urban": 30, "be-bru:rural": 70,
	"ch:trunk": 100, "ch:motorway": 120, "de:living_street": 7, "de:rural": 100, "de:motorway": 140, "es:rural": 90, "es:trunk": 90,
	"es:motorway": 120, "it:rural": 90, "lu:rural": 90, "gb:motorway": 70 * kilometresPerMile, "uk:motorway": 70 * kilometresPerMile,
}

// parseLimit reads a speed limit in km/h: a number, a number of miles, none, or a name such as FR:urban. It returns 0 for an
// unknown limit, such as signals and variable.
func parseLimit(value string) float64 {
	if speed, ok := parseSpeed(value); ok {
		return speed
	}
	value = strings.ToLower(value)
	switch value {
	case "none":
		return 140
	case "walk":
		return 5
	}
	if speed, ok := countryLimits[value]; ok {
		return speed
	}
	_, name, _ := strings.Cut(value, ":")
	if rest, ok := strings.CutPrefix(name, "zone"); ok { // zone:30, zone30
		return namedLimits["zone"+strings.TrimPrefix(rest, ":")]
	}
	return namedLimits[name]
}

// parseSpeed reads "50", "50 km/h" and "30 mph" as km/h.
func parseSpeed(value string) (float64, bool) {
	speed, ok := parseNumber(value)
	if strings.Contains(value, "mph") {
		speed *= kilometresPerMile
	}
	return speed, ok
}

// parseNumber reads the number that a value begins with. A comma is a decimal point.
func parseNumber(value string) (float64, bool) {
	value = strings.TrimSpace(value)
	end := 0
	for end < len(value) && (value[end] >= '0' && value[end] <= '9' || value[end] == '.' || value[end] == ',') {
		end++
	}
	n, err := strconv.ParseFloat(strings.Replace(value[:end], ",", ".", 1), 64)
	return n, err == nil
}

// parseMetres reads "3.5", "3,5 m", 11'6" and 11 ft as metres.
func parseMetres(value string) (float64, bool) {
	n, ok := parseNumber(value)
	if !ok {
		return 0, false
	}
	if feet, inches, isImperial := strings.Cut(value, "'"); isImperial {
		feet, _ := parseNumber(feet)
		extra, _ := parseNumber(inches)
		return (feet*12 + extra) * 0.0254, true
	}
	if strings.Contains(value, "ft") {
		return n * 0.3048, true
	}
	return n, true
}

// parseTonnes reads "3.5", "3.5 t", "3500 kg" and "7000 lbs" as tonnes.
func parseTonnes(value string) (float64, bool) {
	n, ok := parseNumber(value)
	switch {
	case strings.Contains(value, "kg"):
		n /= 1000
	case strings.Contains(value, "lb"):
		n *= 0.45359237 / 1000
	}
	return n, ok
}

// parseDuration reads "25" (minutes), "1:30" (hours and minutes), "1:30:00" and ISO 8601 as in "PT1H30M". It returns 0 for
// anything else and for more than ten days.
func parseDuration(value string) time.Duration {
	const most = 240 * time.Hour
	d, ok := parseClock(value)
	if rest, isISO := strings.CutPrefix(value, "P"); isISO {
		d, ok = parseISODuration(rest)
	}
	if !ok || d < 0 || d > most {
		return 0
	}
	return d
}

// parseClock reads minutes alone, hours and minutes, or hours, minutes and seconds.
func parseClock(value string) (time.Duration, bool) {
	parts := strings.Split(strings.TrimSpace(value), ":")
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	if len(parts) == 1 {
		units = units[1:]
	}
	if len(parts) > len(units) {
		return 0, false
	}
	var sum time.Duration
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(n) * units[i]
	}
	return sum, true
}

// parseISODuration reads what follows the P: days, and behind a T hours, minutes and seconds, such as "1DT2H30M".
func parseISODuration(value string) (time.Duration, bool) {
	days, clock, _ := strings.Cut(value, "T")
	var sum time.Duration
	if n, isDays := strings.CutSuffix(days, "D"); isDays {
		count, err := strconv.ParseUint(n, 10, 16)
		if err != nil {
			return 0, false
		}
		sum = time.Duration(count) * 24 * time.Hour
	} else if days != "" {
		return 0, false
	}
	if clock == "" {
		return sum, days != ""
	}
	d, err := time.ParseDuration(strings.ToLower(clock))
	return sum + d, err == nil
}
