//! A report as a drawing (SVG): the mails that went out beside the ideal, how often was asked for it,
//! and what Graph saw.

use std::path::Path;
use std::time::Duration;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::report::Report;
use crate::series::{Axis, Series};

/// In pixels.
const SIZE: (u32, u32) = (960, 1_080);
const OURS: RGBColor = RGBColor(31, 119, 180);
const OTHER: RGBColor = RGBColor(150, 150, 150);
const LIMIT: RGBColor = RGBColor(214, 39, 40);

/// The file could not be drawn or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the report: {0}")]
pub struct PlotError(Box<dyn std::error::Error + Send + Sync>);

/// What a panel shows.
struct Panel {
    title: &'static str,
    /// Where nothing else is.
    legend: SeriesLabelPosition,
    lines: Vec<(&'static str, RGBColor, Series)>,
}

/// Draws a report into an SVG file.
///
/// # Errors
/// If the file cannot be written.
pub fn plot(report: &Report, path: &Path) -> Result<(), PlotError> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    draw(report, &root).map_err(|error| PlotError(error.to_string().into()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn draw<'a>(report: &Report, root: &Area<'a>) -> Drawn<'a> {
    root.fill(&WHITE)?;
    let axis = Axis::of(report);
    let panels = panels(report, &axis);
    for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(&panels) {
        draw_panel(area, &axis, panel)?;
    }
    root.present()
}

fn panels(report: &Report, axis: &Axis) -> Vec<Panel> {
    let mut panels = vec![
        Panel {
            title: "Mails that Graph has",
            legend: SeriesLabelPosition::LowerRight,
            lines: vec![
                (
                    "a perfect scheduler",
                    OTHER,
                    axis.cumulative(report.ideal.iter().copied()),
                ),
                (
                    "mailrl",
                    OURS,
                    axis.cumulative(report.arrivals.iter().map(|arrival| arrival.after)),
                ),
            ],
        },
        Panel {
            title: "RESERVE calls a minute",
            legend: SeriesLabelPosition::MiddleRight,
            lines: vec![
                ("all", OURS, axis.a_minute(report, |minute| minute.calls)),
                ("denied", OTHER, axis.a_minute(report, |minute| minute.denied)),
            ],
        },
        Panel {
            title: "Messages at Graph in 60 s",
            legend: SeriesLabelPosition::MiddleRight,
            lines: vec![
                ("most", OURS, axis.most(report, Duration::from_mins(1), |_| 1)),
                ("limit", LIMIT, axis.level(report, |minute| minute.per_minute)),
            ],
        },
    ];
    if report.denied.day > 0 {
        panels.push(Panel {
            title: "Recipients at Graph in 24 h",
            legend: SeriesLabelPosition::MiddleRight,
            lines: vec![
                (
                    "most",
                    OURS,
                    axis.most(report, Duration::from_hours(24), |arrival| {
                        arrival.recipients.into()
                    }),
                ),
                ("limit", LIMIT, axis.level(report, |minute| minute.per_day)),
            ],
        });
    }
    panels
}

fn draw_panel<'a>(area: &Area<'a>, axis: &Axis, panel: &Panel) -> Drawn<'a> {
    let values = panel
        .lines
        .iter()
        .flat_map(|(_, _, series)| series)
        .map(|(_, value)| *value);
    let top = values.fold(1.0, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 18))
        .margin(10)
        .margin_right(30)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..axis.end(), 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(axis.unit())
        .y_label_formatter(&|value| format!("{value:.0}"))
        .draw()?;
    for (name, color, series) in &panel.lines {
        chart
            .draw_series(LineSeries::new(series.iter().copied(), color.stroke_width(2)))?
            .label(*name)
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(panel.legend.clone())
        .background_style(WHITE.mix(0.8))
        .border_style(OTHER)
        .draw()
}
