mod expected;
mod lines;
mod oracle;
