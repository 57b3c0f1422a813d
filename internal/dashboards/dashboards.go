// Package dashboards reads the dashboard of contrib/dashboards, for the tests that hold it to the metrics and to a Prometheus.
package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
)

// Panel is a panel that asks Prometheus. Its description says what it shows.
type Panel struct {
	Title       string
	Description string
	Type        string
	Datasource  Datasource
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []Query
}

// Query is one of a panel's.
type Query struct {
	Datasource   Datasource
	Expr         string
	LegendFormat string
}

// Datasource is where a panel or a query asks.
type Datasource struct{ Type, UID string }

// Dashboard is what a file of Grafana has.
type Dashboard struct {
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name       string
			Type       string
			Definition string
		}
	}
	Panels []Panel // but for the rows
}

// Read reads a dashboard of Grafana.
func Read(file string) (*Dashboard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var panels []Panel
	for _, p := range d.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	d.Panels = panels
	return &d, nil
}
