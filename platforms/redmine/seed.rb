# The account of the journey, its project, 14 issues and 51 entries of spent time.
ada = User.new(firstname: "Ada", lastname: "King-Noël", mail: "ada@redmine.example", language: "en", mail_notification: "none")
ada.login = "ada"
ada.password = ada.password_confirmation = "correct horse battery"
ada.save!
ada.update_columns(created_on: Time.utc(2021, 3, 9, 10, 15))
project = Project.create!(identifier: "engine", name: "Analytical Engine", is_public: false,
  enabled_module_names: %w[issue_tracking time_tracking], trackers: Tracker.all)
Member.create!(project: project, principal: ada, roles: [Role.find_by!(name: "Manager")])
activities = TimeEntryActivity.shared.active.order(:position).to_a
issues = 14.times.map do |number|
  Issue.create!(project: project, author: ada, subject: "Wheel #{number + 1} turns & stops", tracker: Tracker.sorted.to_a[number % 3],
    status: IssueStatus.sorted.to_a[number % 3], priority: IssuePriority.active.to_a[number % 4])
end
51.times do |number|
  TimeEntry.create!(project: project, user: ada, author: ada, activity: activities[number % activities.size],
    issue: number % 6 == 5 ? nil : issues[number % 14], hours: [0.25, 1.5, 7.75, 2, 12.5][number % 5],
    spent_on: Date.new(2025, 1, 28) + number * 3, comments: number % 7 == 6 ? "" : "Entry #{number + 1}")
end
